#include "update_bench.hpp"

namespace strata {

TimedCall time_update(KernelTimer& timer, const AdamLayout& layout, std::int64_t count) {
  const auto state = [&](DType dtype) { return timer.tensor(dtype, {count}, BenchValues::zeros); };
  const BenchTensor gradient = timer.tensor(layout.gradient, {count}),
                    master = state(layout.master), moment1 = state(layout.moments),
                    moment2 = state(has_moment2(layout.rule) ? layout.moments : DType::u8),
                    weight = state(DType::bf16);
  const DecayRange decay{0, count};
  UpdateArgs args;
  args.rule = layout.rule;
  args.gradient = gradient;
  args.master = master;
  args.moment1 = moment1;
  args.moment2 = moment2;
  args.weight = weight;
  args.decays = {&decay, 1};
  args.learning_rate = 1e-4;
  args.weight_decay = 0.01;
  args.step = 0;
  return timer.time([&](Kernels& kernels, Stream& stream) {
    ++args.step;
    kernels.update(args, stream);
  });
}

}  // namespace strata
