// Words of other programs that mean something here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::HasSubstr;

RunConfig parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_config(yaml, "run.yaml", overrides);
}

std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  try {
    parse(yaml, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string origin(const RunConfig& config, const std::string& key) {
  for (const RunConfig::Origin& entry : config.resolved)
    if (entry.key == key) return entry.origin;
  return "absent";
}

TEST(ConfigWords, ComputesOnTheHostWhereTransformersWould) {
  for (const char* yaml : {"use_cpu: true", "no_cuda: yes"}) {
    const RunConfig config = parse(yaml);
    EXPECT_EQ(config.device, DeviceKind::cpu) << yaml;
    EXPECT_EQ(origin(config, "device"), "file") << yaml;
  }
  EXPECT_EQ(parse("use_cpu: false").device, DeviceKind::automatic);
  EXPECT_EQ(parse("no_cuda: false\ndevice: gpu").device, DeviceKind::gpu);
  EXPECT_THAT(error_of("device: gpu\nuse_cpu: true"), HasSubstr("'use_cpu'"));
}

TEST(ConfigWords, SearchesForRatiosWhenTheyAreAuto) {
  EXPECT_TRUE(parse("offload: {ratio: auto}").offload.automatic);
  EXPECT_TRUE(parse("", {"offload.ratio=auto"}).offload.automatic);
  EXPECT_THAT(error_of("offload.ratio: 0.5"), HasSubstr("offload.auto: true"));
}

TEST(ConfigWords, SuggestsNoNameThatItWouldRefuse) {
  for (const char* yaml : {"no_cudaa: true", "tf23: 1", "tempalte: qwen", "base_modl: x"})
    EXPECT_THAT(error_of(yaml), HasSubstr("docs/config.md lists all keys")) << yaml;
  EXPECT_THAT(error_of("warmup_ratoi: 0.1"), HasSubstr("did you mean 'warmup_steps'?"));
}

}  // namespace
}  // namespace strata
