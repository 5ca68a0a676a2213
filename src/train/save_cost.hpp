#pragma once
// What a checkpoint that is written while training goes on costs it: how much longer its steps take
// than those before. Thread contract: a value.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace strata {

class SaveCost {
 public:
  SaveCost() { plain_.reserve(num_kept); }

  // A step of neither kind, told before or after.
  void plain(double seconds);
  // The next step carries a checkpoint: it hands the state over.
  void begin();
  // A step while the checkpoint is under way; the first after begin() is the carrier.
  void meanwhile(double seconds);

  struct Extra {
    std::int64_t steps = 0;      // while it was under way
    double carrier_seconds = 0;  // that the carrier took more
    double seconds = 0;          // that all of them took more
  };
  // Since begin(). None where there was no step to compare with, or none meanwhile.
  std::optional<Extra> extra() const;

 private:
  static constexpr std::size_t num_kept = 9;
  std::vector<double> plain_;    // of the last plain steps
  std::optional<double> usual_;  // their median at begin()
  std::vector<double> meanwhile_;
};

}  // namespace strata
