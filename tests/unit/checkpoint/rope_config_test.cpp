#include <nlohmann/json.hpp>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

HfConfig parse_rope(const json& changes) {
  json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"vocab_size", 100},
                 {"hidden_size", 64},
                 {"intermediate_size", 96},
                 {"num_hidden_layers", 2},
                 {"num_attention_heads", 4}};
  config.update(changes);
  return parse_hf_config(config.dump(), "config.json");
}

json llama3(const json& changes = json::object()) {
  json scaling = {{"rope_type", "llama3"},
                  {"factor", 32.0},
                  {"low_freq_factor", 1.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
  scaling.update(changes);
  return scaling;
}

std::string complaint(const json& changes) {
  return error_of<ConfigError>([&] { parse_rope(changes); });
}

TEST(RopeConfig, ReadsTheSpellingOfTransformers4) {
  const HfConfig config = parse_rope({{"rope_theta", 5e5}, {"rope_scaling", llama3()}});
  EXPECT_EQ(config.rope_type, "llama3");
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.rope_factor, 32);
  EXPECT_EQ(config.rope_low_freq_factor, 1);
  EXPECT_EQ(config.rope_high_freq_factor, 4);
  EXPECT_EQ(config.rope_original_max_positions, 8192);
}

TEST(RopeConfig, ReadsTheSpellingOfTransformers5) {
  const HfConfig config = parse_rope({{"rope_parameters", llama3({{"rope_theta", 5e5}})}});
  EXPECT_EQ(config.rope_type, "llama3");
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.rope_factor, 32);
  const HfConfig plain =
      parse_rope({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}});
  EXPECT_EQ(plain.rope_type, "default");
  EXPECT_EQ(plain.rope_theta, 1e6);
}

TEST(RopeConfig, ReadsTheOldNameOfTheType) {
  json scaling = llama3();
  scaling.erase("rope_type");
  scaling["type"] = "llama3";
  EXPECT_EQ(parse_rope({{"rope_scaling", scaling}}).rope_type, "llama3");
  EXPECT_THAT(complaint({{"rope_scaling", llama3({{"type", "linear"}})}}), HasSubstr("disagree"));
}

TEST(RopeConfig, AcceptsBothSpellingsWhenTheyAgree) {
  const HfConfig config = parse_rope({{"rope_theta", 5e5},
                                      {"rope_scaling", llama3()},
                                      {"rope_parameters", llama3({{"rope_theta", 5e5}})}});
  EXPECT_EQ(config.rope_type, "llama3");
  // A theta beside rope_parameters says nothing of scaling.
  EXPECT_EQ(parse_rope({{"rope_theta", 5e5}, {"rope_parameters", llama3()}}).rope_type, "llama3");
}

TEST(RopeConfig, RefusesSpellingsThatDisagree) {
  EXPECT_THAT(complaint({{"rope_theta", 1e4}, {"rope_parameters", {{"rope_theta", 5e5}}}}),
              HasSubstr("rope_theta"));
  EXPECT_THAT(
      complaint({{"rope_scaling", llama3()}, {"rope_parameters", llama3({{"factor", 8.0}})}}),
      HasSubstr("disagree"));
  EXPECT_THAT(complaint({{"rope_scaling", nullptr}, {"rope_parameters", llama3()}}),
              HasSubstr("disagree"));
  EXPECT_THAT(
      complaint({{"rope_scaling", llama3()}, {"rope_parameters", {{"rope_type", "default"}}}}),
      HasSubstr("disagree"));
}

TEST(RopeConfig, ReadsLinearScaling) {
  const HfConfig config = parse_rope({{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}});
  EXPECT_EQ(config.rope_type, "linear");
  EXPECT_EQ(config.rope_factor, 4);
  EXPECT_THAT(complaint({{"rope_scaling", {{"type", "linear"}}}}), HasSubstr("needs 'factor'"));
  EXPECT_THAT(complaint({{"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}}),
              HasSubstr("at least 1"));
  EXPECT_THAT(complaint({{"rope_scaling", {{"type", "linear"}, {"factor", 4}, {"beta_fast", 32}}}}),
              HasSubstr("beta_fast"));
}

json yarn(const json& changes = json::object()) {
  json scaling = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  scaling.update(changes);
  return scaling;
}

TEST(RopeConfig, ReadsYarnWithThePapersDefaults) {
  const HfConfig config = parse_rope({{"rope_theta", 1e6}, {"rope_scaling", yarn()}});
  EXPECT_EQ(config.rope_type, "yarn");
  EXPECT_EQ(config.rope_factor, 4);
  EXPECT_EQ(config.rope_original_max_positions, 32768);
  EXPECT_EQ(config.rope_beta_fast, 32);
  EXPECT_EQ(config.rope_beta_slow, 1);
  EXPECT_TRUE(config.rope_truncates);
  EXPECT_NEAR(config.rope_attention_factor, 1.1386294, 1e-7);  // 0.1 ln 4 + 1
}

TEST(RopeConfig, ReadsYarnsOwnFactors) {
  const auto factor = [](const json& changes) {
    return parse_rope({{"rope_parameters", yarn(changes)}}).rope_attention_factor;
  };
  EXPECT_EQ(factor({{"attention_factor", 1.5}, {"mscale", 2.0}}), 1.5);
  EXPECT_EQ(factor({{"factor", 1.0}}), 1);
  EXPECT_NEAR(factor({{"mscale", 2.0}}), 1.1386294, 1e-7) << "one of two says nothing";
  EXPECT_NEAR(factor({{"mscale", 2.0}, {"mscale_all_dim", 1.0}}), 1.2772589 / 1.1386294, 1e-7);
  const HfConfig config = parse_rope(
      {{"rope_parameters", yarn({{"beta_fast", 16}, {"beta_slow", 2.0}, {"truncate", false}})}});
  EXPECT_EQ(config.rope_beta_fast, 16);
  EXPECT_EQ(config.rope_beta_slow, 2);
  EXPECT_FALSE(config.rope_truncates);
}

TEST(RopeConfig, RefusesIncompleteOrContradictoryYarn) {
  for (const char* key : {"factor", "original_max_position_embeddings"}) {
    json scaling = yarn();
    scaling.erase(key);
    EXPECT_THAT(complaint({{"rope_scaling", scaling}}), HasSubstr(key));
  }
  EXPECT_THAT(complaint({{"rope_scaling", yarn({{"factor", 0.5}})}}), HasSubstr("at least 1"));
  EXPECT_THAT(complaint({{"rope_scaling", yarn({{"beta_fast", 0.5}})}}), HasSubstr("beta_slow"));
  EXPECT_THAT(complaint({{"rope_scaling", yarn({{"finetuned", true}})}}), HasSubstr("finetuned"));
  EXPECT_THAT(complaint({{"rope_theta", 1.0}, {"rope_scaling", yarn()}}), HasSubstr("rope_theta"));
  EXPECT_THAT(complaint({{"rope_scaling", yarn({{"mscale", -9.0}, {"mscale_all_dim", 1.0}})}}),
              HasSubstr("mscale"));
}

TEST(RopeConfig, RefusesOtherTypesByName) {
  for (const char* type : {"dynamic", "longrope", "su"}) {
    EXPECT_THAT(complaint({{"rope_scaling", {{"type", type}, {"factor", 2.0}}}}), HasSubstr(type));
    EXPECT_THAT(complaint({{"rope_parameters", {{"rope_type", type}}}}), HasSubstr(type));
  }
}

TEST(RopeConfig, RefusesIncompleteOrContradictoryLlama3) {
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    json scaling = llama3();
    scaling.erase(key);
    EXPECT_THAT(complaint({{"rope_scaling", scaling}}), HasSubstr(key));
    EXPECT_THAT(complaint({{"rope_scaling", llama3({{key, 0}})}}), HasSubstr(key));
  }
  EXPECT_THAT(complaint({{"rope_scaling", llama3({{"low_freq_factor", 4.0}})}}),
              HasSubstr("less than"));
  EXPECT_THAT(complaint({{"rope_scaling", llama3({{"factor", 0.5}})}}), HasSubstr("factor"));
}

TEST(RopeConfig, RefusesWhatItWouldIgnore) {
  EXPECT_THAT(complaint({{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}),
              HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(complaint({{"rope_parameters", {{"full_attention", json::object()}}}}),
              HasSubstr("full_attention"));
  EXPECT_THAT(complaint({{"rope_theta", 0}}), HasSubstr("rope_theta"));
}

TEST(RopeConfig, RefusesAnObjectOfTheWrongType) {
  EXPECT_THAT(error_of<FormatError>([] {
                parse_rope({{"rope_scaling", 2.0}});
              }),
              HasSubstr("rope_scaling"));
}

}  // namespace
}  // namespace strata
