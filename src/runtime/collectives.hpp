#pragma once
// A rank's part in its job: what it exchanges with the other ranks, and that they learn when it
// fails. Thread contract: gather and reduce from one thread at a time; the rest from any.

#include <cstdint>
#include <string>

#include "runtime/bound_ops.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/device/device.hpp"

namespace strata {

class Collectives {
 public:
  // `comm` may be null for one rank. Throws ConfigError when it joins others than the Program's.
  Collectives(const Program& program, Communicator* comm, Device& device);

  // Both return the bytes that were exchanged.
  std::uint64_t gather(const BoundOp& op, Stream& stream);
  std::uint64_t reduce(const BoundOp& op, Stream& stream);  // with zeros for padding

  // Of collectives that a stream is done with: throws when a failure cut them short.
  void confirm() const { comm_->confirm(); }

  // Ends the other ranks, and what waits for them.
  void abort(const std::string& failure) noexcept;

 private:
  int rank_;
  Communicator* comm_;
  Device& device_;
};

}  // namespace strata
