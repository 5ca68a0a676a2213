// Weights on their way from a model folder to the tiles of several ranks, and back.

#include "src/train/weights_io.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <tuple>

#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "strata/train/ranks.hpp"
#include "unit/train/rank_state.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::fresh_folder;
using ::testing::HasSubstr;
using testing::RankState;

// Nothing is a multiple of anything.
HfConfig odd_model() {
  HfConfig model = random_model_preset("tiny");
  model.vocab_size = 263;
  model.num_hidden_layers = 2;
  model.intermediate_size = 168;
  model.tie_word_embeddings = false;
  return model;
}

const testing::TrainingFiles& files() {
  static const testing::TrainingFiles made = testing::make_training_files(odd_model(), 1);
  return made;
}

RunConfig config_of_ranks(int world, int stage) {
  RunConfig config = testing::tiny_config(files());
  config.gradient_accumulation_steps = 1;
  config.evaluate = false;
  config.world = world;
  config.zero_stage = stage;
  config.offload.tile_bytes = 64 << 10;
  config.offload.nvme_paths = {"drive"};
  return config;
}

// All tiers and tile sizes; a master in fp32 or split.
RunConfig random_config(int world, int stage, std::uint64_t seed) {
  RunConfig config = config_of_ranks(world, stage);
  testing::place_randomly(config, seed);
  config.offload.keep_layers = 0;
  config.compute_threads = config.update_threads = 1;
  config.optimizer_master = seed % 2 == 0 ? MasterFormat::split : MasterFormat::f32;
  config.optimizer_moments = seed % 3 == 0 ? DType::q8 : DType::f32;
  return config;
}

std::uint64_t seed_of(int world, int stage, int placement) {
  return static_cast<std::uint64_t>(100 * world + 10 * stage + placement);
}

std::vector<float> read_parameter(const HfWeights& weights, const ParameterSpec& parameter) {
  std::vector<float> values(static_cast<std::size_t>(parameter.count()));
  weights.read_f32(parameter.name, 0, values);
  return values;
}

// What all slices of a block hold together.
std::vector<float> whole_vector(const BlockSpec& block, std::int64_t elements) {
  static const HfWeights weights(files().model, llama_tensors(odd_model()));
  std::vector<float> whole(static_cast<std::size_t>(elements), 0.0f);
  for (const ParameterSpec& parameter : block.parameters)
    std::ranges::copy(read_parameter(weights, parameter), whole.begin() + parameter.offset);
  return whole;
}

template <typename Element, typename Convert>
std::string converted(std::span<const float> values, Convert convert) {
  std::string bytes(values.size() * sizeof(Element), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Element element = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

std::string as_held(std::span<const float> values, DType dtype) {
  if (dtype == DType::bf16) return converted<bfloat16>(values, weight_to_bfloat16);
  if (dtype == DType::u16) return converted<std::uint16_t>(values, master_low_bits);
  return converted<float>(values, std::identity{});
}

std::string bytes_of(StateAccess& state, const Shard& shard, int tile) {
  const auto bytes = state.read(shard.id, tile);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Every tile of weights and masters against the elements of its place.
void expect_elements(RankState& rank, const Shard& shard) {
  const Program& program = rank.program();
  const BlockSpec& block = rank.run().model->blocks()[static_cast<std::size_t>(shard.block)];
  const std::vector<float> whole = whole_vector(block, program.whole_elements(shard.id));
  for (int tile = 0; tile < program.num_tiles(shard.id); ++tile) {
    const auto begin = program.place_begin(shard.id, program.place(shard.id, tile));
    const auto values =
        std::span(whole).subspan(static_cast<std::size_t>(begin),
                                 static_cast<std::size_t>(program.tile_count(shard.id, tile)));
    EXPECT_TRUE(bytes_of(rank.state(), shard, tile) == as_held(values, shard.dtype))
        << shard.name << " tile " << tile << " of rank " << program.rank;
  }
}

void expect_zeros(RankState& rank, const Shard& shard) {
  for (int tile = 0; tile < rank.program().num_tiles(shard.id); ++tile) {
    const std::string bytes = bytes_of(rank.state(), shard, tile);
    EXPECT_EQ(bytes.find_first_not_of('\0'), std::string::npos) << shard.name << " tile " << tile;
  }
}

void expect_loaded(RankState& rank) {
  for (const Shard& shard : rank.program().shards) {
    if (shard.role == Role::weight || shard.role == Role::master) expect_elements(rank, shard);
    if (shard.role == Role::moment1 || shard.role == Role::moment2) expect_zeros(rank, shard);
  }
}

// Loads on all ranks and exports, nothing between; returns the folder.
fs::path load_and_export(const RunConfig& config, Purpose purpose = Purpose::train) {
  const fs::path target = fresh_folder("export") / "model";
  std::vector<RankLinks> ranks = make_local_ranks(config.world);
  run_ranks(ranks, [&](RankLinks& links) {
    RankState rank(config, links.control->rank(), purpose);
    load_weights(config.model_name_or_path, rank.run(), rank.state());
    export_weights(config, target, rank.run(), rank.state(), links.control.get());
    EXPECT_TRUE(fs::exists(target)) << "rank " << links.control->rank() << " left before the end";
  });
  return target;
}

// Bit by bit what the model folder holds, rounded to `dtype`.
void expect_exported(const fs::path& folder, DType dtype) {
  const std::vector<ExpectedTensor> tensors = llama_tensors(odd_model());
  const HfWeights original(files().model, tensors), exported(folder, tensors);
  for (const ExpectedTensor& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    std::vector<float> expected(static_cast<std::size_t>(count)), found(expected.size());
    original.read_f32(tensor.name, 0, expected);
    exported.read_f32(tensor.name, 0, found);
    EXPECT_EQ(exported.dtype(tensor.name), dtype);
    if (dtype == DType::bf16)
      for (float& value : expected) value = to_float(weight_to_bfloat16(value));
    EXPECT_TRUE(as_held(expected, DType::f32) == as_held(found, DType::f32)) << tensor.name;
  }
}

class WeightsOfRanks : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static int world() { return std::get<0>(GetParam()); }
  static int stage() { return std::get<1>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(WorldsAndStages, WeightsOfRanks,
                         ::testing::Combine(::testing::Values(2, 3, 5, 7),
                                            ::testing::Values(0, 1, 2, 3)),
                         [](const auto& chosen) {
                           return "World" + std::to_string(std::get<0>(chosen.param)) + "Stage" +
                                  std::to_string(std::get<1>(chosen.param));
                         });

TEST_P(WeightsOfRanks, AreEachRanksElementsAndZeroBetweenAndBehindThem) {
  for (int rank = 0; rank < world(); ++rank) {
    const RunConfig config = random_config(world(), stage(), seed_of(world(), stage(), rank));
    RankState state(config, rank);
    load_weights(config.model_name_or_path, state.run(), state.state());
    expect_loaded(state);
  }
}

TEST_P(WeightsOfRanks, AreExportedAsTheyWereLoaded) {
  for (int placement = 0; placement < 4; ++placement) {
    RunConfig config = random_config(world(), stage(), seed_of(world(), stage(), placement));
    config.export_dtype = placement < 2 ? DType::f32 : DType::bf16;
    expect_exported(load_and_export(config), *config.export_dtype);
  }
}

TEST_P(WeightsOfRanks, AreOneShareOfWhatTheStageSlices) {
  const RunConfig config = random_config(world(), stage(), seed_of(world(), stage(), 1));
  RankState rank(config, world() - 1);
  const auto is_sliced = [](Role role, int at_stage) {
    const int first = role == Role::weight ? 3 : role == Role::gradient ? 2 : 1;
    return at_stage >= first;
  };
  for (const Role role : {Role::weight, Role::gradient, Role::master, Role::moment1}) {
    std::int64_t whole = 0;
    for (const Shard& shard : rank.program().shards)
      if (shard.role == role)
        whole += storage_bytes(shard.dtype, rank.program().slice_elements(shard.id)) * world();
    const auto share =
        static_cast<std::uint64_t>(is_sliced(role, stage()) ? whole / world() : whole);
    EXPECT_EQ(held_bytes(rank.run(), role), share) << role_name(role);
  }
}

TEST(Weights, OfOneRankAreExportedAsTheyWereLoaded) {
  for (const auto master : {MasterFormat::f32, MasterFormat::split}) {
    RunConfig config = random_config(1, 3, 4);
    config.optimizer_master = master;
    config.export_dtype = DType::f32;
    RankState rank(config, 0);
    load_weights(config.model_name_or_path, rank.run(), rank.state());
    expect_loaded(rank);
    const fs::path target = fresh_folder("export") / "model";
    export_weights(config, target, rank.run(), rank.state(), nullptr);
    expect_exported(target, DType::f32);
  }
}

TEST(Weights, WithoutMastersAreExportedToo) {
  RunConfig config = random_config(3, 3, 5);
  expect_exported(load_and_export(config, Purpose::evaluate), DType::bf16);
  config.bf16 = false;
  expect_exported(load_and_export(config, Purpose::evaluate), DType::f32);
}

// Bytes that this thread has read from files; none where the system does not count.
std::int64_t bytes_read() {
  std::ifstream file("/proc/thread-self/io");
  std::string word;
  std::int64_t bytes = -1;
  while (file >> word)
    if (word == "rchar:") file >> bytes;
  return bytes;
}

TEST(Weights, AreToldOfAsTheyComeHomeAndLeave) {
  RunConfig config = random_config(1, 3, 4);
  RankState rank(config, 0);
  std::uint64_t loaded = 0;
  rank.state().on_write([&](std::uint64_t bytes) { loaded += bytes; });
  load_weights(config.model_name_or_path, rank.run(), rank.state());
  EXPECT_EQ(loaded, held_state_bytes(rank.run()));
  EXPECT_GE(rank.state().stored_bytes(), rank.run().plan.tier_bytes[2] / 2);
  std::vector<std::uint64_t> told;
  export_weights(config, fresh_folder("export") / "model", rank.run(), rank.state(), nullptr,
                 [&](std::uint64_t done, std::uint64_t total) {
                   EXPECT_EQ(total, exported_bytes(config, rank.run()));
                   told.push_back(done);
                 });
  EXPECT_EQ(told.front(), 0u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), exported_bytes(config, rank.run()));
}

// Of the model's parameters, what lies in slices of this rank, in the fp32 of the file.
std::int64_t file_bytes_of(const PlannedRun& run) {
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < run.model->blocks().size(); ++b) {
    const ShardId weight = run.program.find(Role::weight, static_cast<int>(b));
    const std::int64_t slice = run.program.slice_elements(weight);
    const bool is_sliced = run.program.slices(Role::weight);
    const std::int64_t begin = is_sliced ? slice * run.program.rank : 0;
    const std::int64_t end = is_sliced ? begin + slice : slice * run.program.world;
    for (const ParameterSpec& p : run.model->blocks()[b].parameters)
      bytes += 4 * std::max<std::int64_t>(
                       0, std::min(p.offset + p.count(), end) - std::max(p.offset, begin));
  }
  return bytes;
}

TEST(Weights, AreReadFromTheFileOnceAndOnlyWhereARankHoldsThem) {
  if (bytes_read() < 0) GTEST_SKIP() << "this system does not count what a thread reads";
  constexpr std::int64_t headers = 32 << 10;
  for (const int stage : {1, 3})
    for (int at = 0; at < 4; ++at) {
      const RunConfig config = config_of_ranks(4, stage);
      RankState rank(config, at);
      const std::int64_t before = bytes_read();
      load_weights(config.model_name_or_path, rank.run(), rank.state());
      const std::int64_t read = bytes_read() - before;
      EXPECT_GE(read, file_bytes_of(rank.run())) << "stage " << stage << " rank " << at;
      EXPECT_LE(read, file_bytes_of(rank.run()) + headers) << "stage " << stage << " rank " << at;
    }
}

std::string failure_of(std::vector<RankLinks>& ranks, const std::function<void(RankLinks&)>& body) {
  try {
    run_ranks(ranks, body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Weights, LetTheServingRanksGoWhenTheFirstCannotWrite) {
  const RunConfig config = config_of_ranks(3, 3);
  const fs::path taken = fresh_folder("export");
  std::vector<RankLinks> ranks = make_local_ranks(3);
  const std::string failure = failure_of(ranks, [&](RankLinks& links) {
    RankState rank(config, links.control->rank());
    load_weights(config.model_name_or_path, rank.run(), rank.state());
    export_weights(config, taken, rank.run(), rank.state(), links.control.get());
    EXPECT_GT(links.control->rank(), 0) << "nothing was written";
  });
  EXPECT_THAT(failure, HasSubstr("rank 0"));
  EXPECT_THAT(failure, HasSubstr(taken.string()));
}

TEST(Weights, AreNotExportedInPartWhenARankFailsToServe) {
  const RunConfig config = config_of_ranks(3, 3);
  const fs::path folder = fresh_folder("export");
  std::vector<RankLinks> ranks = make_local_ranks(3);
  const std::string failure = failure_of(ranks, [&](RankLinks& links) {
    RankState rank(config, links.control->rank());
    load_weights(config.model_name_or_path, rank.run(), rank.state());
    if (links.control->rank() == 2) throw Error("the drive is gone");
    export_weights(config, folder / "model", rank.run(), rank.state(), links.control.get());
  });
  EXPECT_THAT(failure, HasSubstr("rank 2: the drive is gone"));
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace strata
