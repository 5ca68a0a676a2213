#include "support/toy_data.hpp"

#include <limits>
#include <span>

#include "strata/core/philox.hpp"

namespace strata::testing {
namespace {

std::int32_t token(std::size_t i, std::int64_t step, int micro_batch) {
  const auto word = philox4x32({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(step),
                                static_cast<std::uint32_t>(micro_batch), 0},
                               {3, 4})[0];
  return static_cast<std::int32_t>(word % 1000);
}

}  // namespace

bool is_toy_state(Role role) {
  return role == Role::weight || role == Role::master || role == Role::moment1 ||
         role == Role::moment2;
}

float initial_value(const Program& program, const Shard& shard, std::int64_t element) {
  if (element >= program.model_elements(shard.id)) return std::numeric_limits<float>::quiet_NaN();
  if (shard.role == Role::moment1 || shard.role == Role::moment2) return 0;
  const auto word = philox4x32(
      {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(shard.block), 0, 0},
      {1, 2})[0];
  return static_cast<float>(word) * 0x1.0p-32f - 0.5f;
}

void ToyStep::fill(const Program& program, std::int64_t step, const ToyRunOptions& options) {
  data_.clear();
  args_.inputs.clear();
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::input) continue;
    data_.emplace_back(static_cast<std::size_t>(shard.count));
    for (std::size_t i = 0; i < data_.back().size(); ++i)
      data_.back()[i] = token(i, step, shard.micro_batch * program.world + program.rank);
  }
  for (const auto& d : data_) args_.inputs.push_back(std::as_bytes(std::span(d)));
  args_.index = step;
  args_.loss_scale = 1.0 / 128;
  args_.hyper = {step + 1, 0.05f, options.max_grad_norm};
}

}  // namespace strata::testing
