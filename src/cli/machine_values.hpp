#pragma once
// The numbers of a machine profile as one list: for a table, and for programs as JSON. Thread
// contract: pure.

#include <string>
#include <vector>

#include "quantity.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

struct MachineValue {
  std::string key;  // "link.up_bytes_per_s", "accelerator.bf16[4.3 GFLOP]"
  double value = 0;
  Quantity quantity = Quantity::ratio;
  std::string source;
};
std::vector<MachineValue> machine_values(const MachineProfile& machine);

std::string machine_table(const MachineProfile& machine);
// Values in bytes, FLOP, parameters and seconds.
std::string machine_json(const MachineProfile& machine);

}  // namespace strata
