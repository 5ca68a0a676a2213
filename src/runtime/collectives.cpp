#include "runtime/collectives.hpp"

#include <fmt/format.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

void check_ranks_match(const Program& program, const Communicator* comm) {
  if (comm == nullptr && program.world == 1) return;
  if (comm == nullptr)
    throw ConfigError(
        fmt::format("the plan is for rank {} of {} ranks, but there is no link to "
                    "the others",
                    program.rank, program.world));
  if (comm->rank() != program.rank || comm->world() != program.world)
    throw ConfigError(
        fmt::format("the plan is for rank {} of {} ranks, but its link is that of "
                    "rank {} of {}",
                    program.rank, program.world, comm->rank(), comm->world()));
}

}  // namespace

Collectives::Collectives(const Program& program, Communicator* comm, Device& device)
    : rank_(program.rank), comm_(comm), device_(device) {
  check_ranks_match(program, comm);
}

std::uint64_t Collectives::gather(const BoundOp& op, Stream& stream) {
  const std::uint64_t before = comm_->bytes_exchanged();
  comm_->all_gather(op.views[0], op.views[1], stream);
  return comm_->bytes_exchanged() - before;
}

// The models wrote nothing behind their vectors: what the slots hold there may be anything.
std::uint64_t Collectives::reduce(const BoundOp& op, Stream& stream) {
  const std::uint64_t before = comm_->bytes_exchanged();
  comm_->reduce_scatter(op.views[0], op.views[1], stream);
  if (!op.padding.empty()) device_.zero(op.padding.data(), op.padding.size(), stream);
  return comm_->bytes_exchanged() - before;
}

void Collectives::abort(const std::string& failure) noexcept {
  if (comm_ != nullptr) comm_->abort(fmt::format("rank {}: {}", rank_, failure));
}

}  // namespace strata
