#pragma once
// What the emulator finds wrong with a kernel: the first fault ends the launch.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace strata::simt {

enum class FaultKind : std::uint8_t {
  out_of_bounds,
  misaligned,
  race,           // two threads, one address, a write, no barrier between
  divergence,     // threads wait at different barriers, or some left
  uninitialized,  // shared memory read before anybody wrote it
  pending_copy,   // a thread ends while its asynchronous copies are under way
  bad_launch,
};

class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  FaultKind kind() const { return kind_; }

 private:
  FaultKind kind_;
};

}  // namespace strata::simt
