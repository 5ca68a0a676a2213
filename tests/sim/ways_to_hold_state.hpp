#pragma once
// How runs hold their state: on which tiers, in which tiles, on how many ranks.

#include <functional>
#include <string>
#include <vector>

#include "strata/train/run_config.hpp"

namespace strata::testing {

struct Way {
  std::string name;
  std::function<void(RunConfig&)> apply;
  int world = 1;
};

inline void all_on(RunConfig& config, const TierFractions& fractions) {
  OffloadConfig& offload = config.offload;
  offload.weights = offload.gradients = offload.master = offload.moment1 = offload.moment2 =
      fractions;
}

inline const Way in_ram{"ram", [](RunConfig&) {}},
    on_device{"device",
              [](RunConfig&c) {
                all_on(c, {1, 0, 0});
              }},
    on_nvme{"nvme",
            [](RunConfig&c) {
              all_on(c, {0, 0, 1});
            }},
    mixed{"mixed",
          [](RunConfig&c) {
            all_on(c, {0.3, 0.4, 0.3});
          }},
    small_tiles{"tiles of 16 KiB", [](RunConfig&c) { c.offload.tile_bytes = 16 << 10; }},
    split{"split",
          [](RunConfig&c) {
            c.optimizer_master = MasterFormat::split;
            all_on(c, {0, 0.5, 0.5});
          }},
    two_stage_3{"two ranks, stage 3", [](RunConfig&c) { c.zero_stage = 3; }, 2},
    two_stage_1{"two ranks, stage 1 on nvme",
                [](RunConfig&c) {
                  c.zero_stage = 1;
                  all_on(c, {0, 0, 1});
                },
                2},
    two_stage_0{"two ranks, stage 0, split",
                [](RunConfig&c) {
                  c.zero_stage = 0;
                  c.optimizer_master = MasterFormat::split;
                },
                2},
    three_stage_2{"three ranks, stage 2", [](RunConfig&c) { c.zero_stage = 2; }, 3};

inline std::vector<Way> all_ways() {
  return {in_ram, on_device,   on_nvme,     mixed,       small_tiles,
          split,  two_stage_3, two_stage_1, two_stage_0, three_stage_2};
}

}  // namespace strata::testing
