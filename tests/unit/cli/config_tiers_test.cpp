#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"
#include "unit/cli/config_texts.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

std::string with_drive(const std::string& yaml) {
  return yaml + "\noffload.nvme_paths: [/mnt/nvme]\n";
}

OffloadConfig parse_offload(const std::string& yaml,
                            const std::vector<std::string>& overrides = {}) {
  return parse_config(with_drive(yaml), "run.yaml", overrides).offload;
}

std::string offload_error_of(const std::string& yaml,
                             const std::vector<std::string>& overrides = {}) {
  return ConfigErrors{"run.yaml"}(with_drive(yaml), overrides);
}

TEST(TierTable, SetsMasterAndMomentsTogetherAsOptimizer) {
  const OffloadConfig offload = parse_offload("offload.optimizer: {gpu: 0.1, cpu: 0.4, nvme: 0.5}");
  expect_tiers(offload.master, {0.1, 0.4, 0.5});
  expect_tiers(offload.moment1, {0.1, 0.4, 0.5});
  expect_tiers(offload.moment2, {0.1, 0.4, 0.5});
  expect_tiers(offload.weights, {0, 1, 0});
}

TEST(TierTable, LetsARoleNamedByItselfWinInEitherOrder) {
  const OffloadConfig after = parse_offload("offload.optimizer: nvme\noffload.master: cpu");
  const OffloadConfig before = parse_offload("offload.master: cpu\noffload.optimizer: nvme");
  for (const OffloadConfig& offload : {after, before}) {
    expect_tiers(offload.master, {0, 1, 0});
    expect_tiers(offload.moment1, {0, 0, 1});
    expect_tiers(offload.moment2, {0, 0, 1});
  }
}

TEST(TierTable, ReadsEachRoleIntoItsOwnField) {
  const OffloadConfig offload = parse_offload(
      "offload.weights: {gpu: 0.1}\noffload.gradients: {gpu: 0.2}\noffload.master: {gpu: 0.3}\n"
      "offload.moment1: {gpu: 0.4}\noffload.moment2: {gpu: 0.5}\noffload.activations: {gpu: 0.6}\n"
      "offload.saved: {gpu: 0.7}");
  expect_tiers(offload.weights, {0.1, 0.9, 0});
  expect_tiers(offload.gradients, {0.2, 0.8, 0});
  expect_tiers(offload.master, {0.3, 0.7, 0});
  expect_tiers(offload.moment1, {0.4, 0.6, 0});
  expect_tiers(offload.moment2, {0.5, 0.5, 0});
  expect_tiers(offload.activations, {0.6, 0.4, 0});
  expect_tiers(offload.saved, {0.7, 0.3, 0});
}

TEST(TierTable, GivesTheRemainderToTheNextSlowerTier) {
  expect_tiers(parse_offload("offload.master: {gpu: 0.1}").master, {0.1, 0.9, 0});
  expect_tiers(parse_offload("offload.master: {cpu: 0.4}").master, {0, 0.4, 0.6});
  expect_tiers(parse_offload("offload.master: {gpu: 0.1, cpu: 0.4}").master, {0.1, 0.4, 0.5});
  expect_tiers(parse_offload("offload.master: {nvme: 0.5}").master, {0, 0.5, 0.5});
  expect_tiers(parse_offload("offload.master: {gpu: 0.1, nvme: 0.5}").master, {0.1, 0.4, 0.5});
}

TEST(TierTable, RefusesARemainderThatNoTierCanTake) {
  EXPECT_THAT(offload_error_of("offload.master: {cpu: 0.3, nvme: 0.5}"),
              HasSubstr("is 0.8, less than 1"));
}

TEST(TierTable, RefusesFractionsOutOfRange) {
  EXPECT_THAT(offload_error_of("offload.master: {gpu: 0.6, cpu: 0.6}"),
              HasSubstr("gpu 0.6 + cpu 0.6 + nvme 0 is 1.2, more than 1"));
  EXPECT_THAT(offload_error_of("offload.master: {gpu: -0.1}"),
              HasSubstr("offload.master.gpu in run.yaml:1"));
  EXPECT_THAT(offload_error_of("offload.master: {gpu: 1.1}"),
              HasSubstr("is not a number >= 0, <= 1"));
  EXPECT_THAT(offload_error_of("offload.master: {disk: 1}"),
              HasSubstr("unknown tier 'disk': known are gpu, cpu and nvme"));
  EXPECT_THAT(offload_error_of("offload.master: tape"), HasSubstr("unknown tier 'tape'"));
  EXPECT_THAT(offload_error_of("offload.master: [1, 2]"), HasSubstr("expected a tier or a table"));
  EXPECT_THAT(offload_error_of("offload.master: {gpu: 0.5, gpu: 0.5}"),
              HasSubstr("gpu is listed twice"));
}

TEST(TierTable, AcceptsSumsThatAreOneButForRounding) {
  expect_tiers(parse_offload("offload.master: {gpu: 0.1, cpu: 0.2, nvme: 0.7}").master,
               {0.1, 0.2, 0.7});
}

TEST(TierTable, AcceptsOneTierAsAWord) {
  expect_tiers(parse_offload("offload.optimizer: nvme").moment2, {0, 0, 1});
  expect_tiers(parse_offload("offload.weights: gpu").weights, {1, 0, 0});
}

TEST(TierTable, ReadsDeviceAndRatioAsDeepSpeedDoes) {
  expect_tiers(parse_offload("offload.optimizer: {device: nvme, ratio: 0.6}").master,
               {0.4, 0, 0.6});
  expect_tiers(parse_offload("offload.optimizer: {device: cpu}").master, {0, 1, 0});
  expect_tiers(parse_offload("offload.optimizer: {device: none}").master, {1, 0, 0});
  EXPECT_THAT(offload_error_of("offload.optimizer: {device: tape}"),
              HasSubstr("device must be gpu, cpu or nvme"));
  EXPECT_THAT(offload_error_of("offload.optimizer: {device: cpu, pin_memory: true}"),
              HasSubstr("unknown key 'pin_memory'"));
}

TEST(TierTable, IsReachedTierByTierFromTheCommandLine) {
  expect_tiers(parse_offload("", {"offload.optimizer.nvme=0.5"}).moment1, {0, 0.5, 0.5});
  expect_tiers(
      parse_offload("offload.optimizer: {gpu: 0.2}", {"offload.optimizer.nvme=0.5"}).moment1,
      {0.2, 0.3, 0.5});
  expect_tiers(parse_offload("offload.optimizer: {gpu: 0.2}",
                             {"offload.optimizer.gpu=0.3", "offload.optimizer.nvme=0.1"})
                   .moment1,
               {0.3, 0.6, 0.1});
  EXPECT_THAT(offload_error_of("offload.optimizer: {cpu: 1}", {"offload.optimizer.nvme=0.5"}),
              HasSubstr("offload.optimizer on the command line"));
}

TEST(TierTable, IsReplacedWholeByAWholeTable) {
  expect_tiers(parse_offload("offload.optimizer: {gpu: 0.2}\noffload.master: cpu",
                             {"offload.optimizer=nvme"})
                   .master,
               {0, 0, 1});
  expect_tiers(parse_offload("offload.master: cpu", {"offload.master={gpu: 0.5}"}).master,
               {0.5, 0.5, 0});
}

TEST(TierTable, RefusesToAddATierToAWord) {
  EXPECT_THAT(offload_error_of("offload.optimizer: nvme", {"offload.optimizer.gpu=0.1"}),
              HasSubstr("give the whole table"));
}

}  // namespace
}  // namespace strata
