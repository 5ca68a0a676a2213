#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {
namespace {

const auto is_key = ::testing::MatchesRegex("[a-z][a-z0-9_]*");

TEST(Names, OfResourcesAndLanesAreOneKeyForToolsAndOneLabelForPeople) {
  std::set<std::string_view> keys, labels;
  for (int i = 0; i < num_resources; ++i) {
    const auto resource = static_cast<Resource>(i);
    EXPECT_THAT(std::string(resource_key(resource)), is_key);
    EXPECT_TRUE(keys.insert(resource_key(resource)).second);
    EXPECT_TRUE(labels.insert(resource_name(resource)).second);
  }
  keys.clear(), labels.clear();
  for (int i = 0; i < num_lanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    EXPECT_THAT(std::string(lane_name(lane)), is_key);
    EXPECT_TRUE(keys.insert(lane_name(lane)).second);
    EXPECT_TRUE(labels.insert(lane_label(lane)).second);
  }
}

// A link is named alike whether one speaks of what it can do or of who uses it.
TEST(Names, OfCopiesBetweenDeviceAndHostAreThoseOfTheirLanes) {
  EXPECT_EQ(resource_key(Resource::up), lane_name(Lane::h2d));
  EXPECT_EQ(resource_key(Resource::down), lane_name(Lane::d2h));
  EXPECT_EQ(resource_name(Resource::up), lane_name(Lane::h2d));
  EXPECT_EQ(resource_key(Resource::update), lane_name(Lane::update));
}

}  // namespace
}  // namespace strata
