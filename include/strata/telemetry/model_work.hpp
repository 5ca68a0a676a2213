#pragma once
// What a model computes in a step, and what share of its device's peak that makes. A value.

namespace strata {

// Of a step on each device, what was computed a second time not counted.
struct ModelWork {
  double flops = 0;             // 0: not known
  double peak_flops_per_s = 0;  // of the device; 0: not known

  double flops_per_s(double seconds) const { return seconds > 0 ? flops / seconds : 0; }
  double mfu(double seconds) const {
    return peak_flops_per_s > 0 ? flops_per_s(seconds) / peak_flops_per_s : 0;
  }
};

}  // namespace strata
