#include "strata/data/batches.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

#include "strata/core/error.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using Ints = std::vector<std::int32_t>;

struct MicroBatch {
  Ints tokens, labels, starts;
  std::int64_t trained = 0;
  bool operator==(const MicroBatch&) const = default;
};

MicroBatch fill(const Batches& batches, std::int64_t index) {
  const auto count = static_cast<std::ptrdiff_t>(batches.tokens_per_micro_batch());
  Ints all(static_cast<std::size_t>(3 * count), -7);
  MicroBatch batch;
  batch.trained = batches.fill(index, all);
  batch.tokens.assign(all.begin(), all.begin() + count);
  batch.labels.assign(all.begin() + count, all.begin() + 2 * count);
  batch.starts.assign(all.begin() + 2 * count, all.end());
  return batch;
}

std::vector<TokenShard> one(TokenShard shard) {
  std::vector<TokenShard> shards;
  shards.push_back(std::move(shard));
  return shards;
}

// Two shards of random documents, up to twice as long as a row of 16.
std::vector<TokenShard> two_shards(Masks masks) {
  std::vector<TokenShard> shards;
  shards.push_back(make_shard("a.tok", random_documents(60, 32, 900, masks, 1), 1000));
  shards.push_back(make_shard("b.tok", random_documents(41, 9, 900, masks, 2), 1000));
  return shards;
}

BatchOptions row_of_16(RowLayout layout) {
  return {.sequence_length = 16, .rows_per_micro_batch = 3, .layout = layout};
}

constexpr std::array layouts = {RowLayout::windows, RowLayout::packed, RowLayout::separate};

// Documents (1 2 3 4 5), (6 7), (8 9 10); token 3 and 9 masked.
TokenShard small_shard() {
  return make_shard("small.tok",
                    {{{1, 2, 3, 4, 5}, {true, true, false, true, true}},
                     {{6, 7}, {}},
                     {{8, 9, 10}, {true, false, true}}},
                    20);
}

Batches small_batches(RowLayout layout, std::int64_t rows) {
  return Batches(one(small_shard()), {.sequence_length = 4,
                                      .rows_per_micro_batch = rows,
                                      .layout = layout,
                                      .order = RowOrder::in_order});
}

TEST(Batches, WindowsCutTheStreamAndKeepLabelsAcrossRows) {
  const Batches batches = small_batches(RowLayout::windows, 3);
  const MicroBatch batch = fill(batches, 0);
  EXPECT_THAT(batch.tokens, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(2, -1, 4, 5, -1, 7, -1, -1, 10, -1, -1, -1));
  EXPECT_THAT(batch.starts, ElementsAre(0, 0, 0, 0, 4, 5, 5, 7, 8, 8, 10, 11));
  EXPECT_EQ(batch.trained, 5);
}

TEST(Batches, PackedPlacesWholeDocumentsFirstFit) {
  const Batches batches = small_batches(RowLayout::packed, 3);
  const MicroBatch batch = fill(batches, 0);
  EXPECT_EQ(batches.num_rows(), 3);
  EXPECT_THAT(batch.tokens, ElementsAre(1, 2, 3, 4, 6, 7, 0, 0, 8, 9, 10, 0));
  EXPECT_THAT(batch.labels, ElementsAre(2, -1, 4, -1, 7, -1, -1, -1, -1, 10, -1, -1));
  EXPECT_THAT(batch.starts, ElementsAre(0, 0, 0, 0, 4, 4, 6, 7, 8, 8, 8, 11));
  EXPECT_EQ(batch.trained, 4);
}

TEST(Batches, PackedFillsEarlierRowsFirst) {
  const Batches batches(
      one(make_shard("a.tok", {{{1, 1, 1}, {}}, {{2, 2}, {}}, {{3}, {}}, {{4, 4}, {}}}, 9)),
      {.sequence_length = 4,
       .rows_per_micro_batch = 2,
       .layout = RowLayout::packed,
       .order = RowOrder::in_order});
  EXPECT_THAT(fill(batches, 0).tokens, ElementsAre(1, 1, 1, 3, 2, 2, 4, 4));
}

TEST(Batches, SeparateGivesEachDocumentARow) {
  const Batches batches = small_batches(RowLayout::separate, 2);
  EXPECT_EQ(batches.num_rows(), 3);
  EXPECT_EQ(batches.micro_batches_per_epoch(), 2);
  EXPECT_THAT(fill(batches, 0).tokens, ElementsAre(1, 2, 3, 4, 6, 7, 0, 0));
  const MicroBatch last = fill(batches, 1);
  EXPECT_THAT(last.tokens, ElementsAre(8, 9, 10, 0, 0, 0, 0, 0));
  EXPECT_THAT(last.labels, ElementsAre(-1, 10, -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(last.starts, ElementsAre(0, 0, 0, 3, 4, 5, 6, 7));
  EXPECT_EQ(last.trained, 1);
}

TEST(Batches, TrainedTokensSumUpToTheEpoch) {
  for (RowLayout layout : layouts) {
    for (Masks masks : {Masks::none, Masks::random}) {
      const Batches batches(two_shards(masks), row_of_16(layout));
      std::int64_t returned = 0, labelled = 0;
      for (std::int64_t i = 0; i < batches.micro_batches_per_epoch(); ++i) {
        const MicroBatch batch = fill(batches, i);
        returned += batch.trained;
        labelled += std::count_if(batch.labels.begin(), batch.labels.end(),
                                  [](std::int32_t label) { return label >= 0; });
      }
      EXPECT_EQ(returned, batches.trained_tokens_in_epoch());
      EXPECT_EQ(labelled, batches.trained_tokens_in_epoch());
    }
  }
}

TEST(Batches, WindowsTrainEveryTargetOfTheCorpusOnce) {
  const auto shards = two_shards(Masks::random);
  std::multiset<std::int32_t> wanted;
  for (const TokenShard& shard : shards) {
    for (const TokenDocument& document : documents_of(shard)) {
      for (std::size_t i = 1; i < document.tokens.size(); ++i) {
        if (document.trained[i]) wanted.insert(static_cast<std::int32_t>(document.tokens[i]));
      }
    }
  }
  const Batches batches(two_shards(Masks::random), row_of_16(RowLayout::windows));
  std::multiset<std::int32_t> found;
  for (std::int64_t i = 0; i < batches.micro_batches_per_epoch(); ++i) {
    for (std::int32_t label : fill(batches, i).labels) {
      if (label >= 0) found.insert(label);
    }
  }
  EXPECT_EQ(found, wanted);
}

using Entry = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // token, label, position

std::map<Entry, int> entries_of(const Batches& batches) {
  std::map<Entry, int> entries;
  for (std::int64_t index = 0; index < batches.micro_batches_per_epoch(); ++index) {
    const MicroBatch batch = fill(batches, index);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const auto position = static_cast<std::int32_t>(i) - batch.starts[i];
      ++entries[{batch.tokens[i], batch.labels[i], position}];
    }
  }
  return entries;
}

TEST(Batches, PackedAndSeparateHoldTheSameTokensLabelsAndPositions) {
  // Tokens 1.. only, so that padding (0, -1, 0) can be told from data.
  std::vector<TokenDocument> documents = random_documents(80, 24, 500, Masks::random, 4);
  for (auto& document : documents) {
    for (auto& token : document.tokens) ++token;
  }
  const Entry padding{0, -1, 0};
  auto packed =
      entries_of({one(make_shard("a.tok", documents, 501)), row_of_16(RowLayout::packed)});
  auto separate =
      entries_of({one(make_shard("a.tok", documents, 501)), row_of_16(RowLayout::separate)});
  EXPECT_LT(packed[padding], separate[padding]);
  packed.erase(padding);
  separate.erase(padding);
  EXPECT_EQ(packed, separate);
}

TEST(Batches, NoTokenSeesAnotherRowOrDocument) {
  for (RowLayout layout : layouts) {
    const Batches batches(two_shards(Masks::none), row_of_16(layout));
    for (std::int64_t index = 0; index < batches.micro_batches_per_epoch(); ++index) {
      const Ints starts = fill(batches, index).starts;
      for (std::size_t i = 0; i < starts.size(); ++i) {
        const auto here = static_cast<std::int32_t>(i);
        ASSERT_LE(starts[i], here);
        ASSERT_GE(starts[i], here / 16 * 16);
        ASSERT_TRUE(starts[i] == here || starts[i] == starts[i - 1]);
      }
    }
  }
}

TEST(Batches, SeekingIsAsGoodAsGoingThrough) {
  const Batches batches(two_shards(Masks::random), row_of_16(RowLayout::packed));
  const std::int64_t total = 3 * batches.micro_batches_per_epoch();
  std::vector<MicroBatch> sequential;
  for (std::int64_t i = 0; i < total; ++i) sequential.push_back(fill(batches, i));
  const Batches fresh(two_shards(Masks::random), row_of_16(RowLayout::packed));
  for (std::int64_t i = total - 1; i >= 0; --i) {
    EXPECT_EQ(fill(fresh, i), sequential[static_cast<std::size_t>(i)]) << i;
  }
}

TEST(Batches, EveryEpochHasItsOwnOrder) {
  BatchOptions options = row_of_16(RowLayout::separate);
  const Batches shuffled(two_shards(Masks::none), options);
  const std::int64_t epoch = shuffled.micro_batches_per_epoch();
  EXPECT_NE(fill(shuffled, 0), fill(shuffled, epoch));
  options.seed = 43;
  EXPECT_NE(fill(shuffled, 0), fill(Batches(two_shards(Masks::none), options), 0));
}

TEST(Batches, HoldNothingBehindTheOnePassInOrder) {
  BatchOptions options = row_of_16(RowLayout::separate);
  options.order = RowOrder::in_order;
  const Batches batches(two_shards(Masks::none), options);
  const std::int64_t end = batches.micro_batches_per_epoch();
  EXPECT_GT(batches.trained_tokens(end - 1), 0);
  for (const std::int64_t behind : {end, end + 1, 2 * end}) {
    const MicroBatch batch = fill(batches, behind);
    EXPECT_EQ(batch.trained, 0);
    EXPECT_EQ(batches.trained_tokens(behind), 0);
    EXPECT_THAT(batch.tokens, ::testing::Each(0));
    EXPECT_THAT(batch.labels, ::testing::Each(-1));
  }
}

// Rows of separate documents whose first token is the document's number, seen in one pass.
std::vector<std::int32_t> rows_seen(int num_documents, int world, int rank) {
  std::vector<TokenDocument> documents;
  for (int d = 0; d < num_documents; ++d)
    documents.push_back({{static_cast<std::uint32_t>(d + 1), 1}, {}});
  const Batches batches(one(make_shard("rows.tok", documents, 1000)),
                        {.sequence_length = 2,
                         .rows_per_micro_batch = 3,
                         .layout = RowLayout::separate,
                         .order = RowOrder::in_order,
                         .world = world,
                         .rank = rank});
  std::vector<std::int32_t> rows;
  for (std::int64_t i = 0; i * world < batches.micro_batches_per_epoch(); ++i) {
    const MicroBatch batch = fill(batches, i);
    for (std::size_t t = 0; t < batch.tokens.size(); t += 2) {
      if (batch.tokens[t] != 0) rows.push_back(batch.tokens[t] - 1);
    }
  }
  return rows;
}

TEST(Batches, RanksPartitionTheRows) {
  for (int world : {1, 2, 3, 5}) {
    for (int num_documents : {1, 29, 30, 31}) {
      std::vector<std::int32_t> all;
      for (int rank = 0; rank < world; ++rank) {
        const auto rows = rows_seen(num_documents, world, rank);
        all.insert(all.end(), rows.begin(), rows.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<std::int32_t> wanted(static_cast<std::size_t>(num_documents));
      std::iota(wanted.begin(), wanted.end(), 0);
      EXPECT_EQ(all, wanted) << "world " << world;
    }
  }
}

using RankBatches = std::vector<std::unique_ptr<Batches>>;  // by rank

RankBatches ranks_of(BatchOptions options, int world, Masks masks) {
  RankBatches ranks;
  options.world = world;
  for (options.rank = 0; options.rank < world; ++options.rank)
    ranks.push_back(std::make_unique<Batches>(two_shards(masks), options));
  return ranks;
}

TEST(Batches, AStepOf8MicroBatchesIsTheSameForEachNumberOfRanks) {
  for (const RowLayout layout : layouts) {
    const Batches alone(two_shards(Masks::random), row_of_16(layout));
    ASSERT_NE(alone.micro_batches_per_epoch() % 8, 0) << "a step should run over an epoch's end";
    for (const int world : {2, 4, 8}) {
      const auto ranks = ranks_of(row_of_16(layout), world, Masks::random);
      // The first of a turn, for steps of 8 over more than two epochs.
      for (std::int64_t turn = 0; turn < 2 * alone.micro_batches_per_epoch() + 8; turn += world)
        for (int rank = 0; rank < world; ++rank)
          ASSERT_EQ(fill(*ranks[static_cast<std::size_t>(rank)], turn / world),
                    fill(alone, turn + rank))
              << "rank " << rank << " of " << world << ", turn " << turn;
    }
  }
}

void expect_sums_to_trained_tokens(const RankBatches& ranks) {
  const auto world = static_cast<std::int64_t>(ranks.size());
  const std::int64_t end = 2 * ranks[0]->micro_batches_per_epoch() / world + 2;
  for (std::int64_t index = 0; index < end; ++index) {
    std::int64_t filled = 0;
    for (const auto& rank : ranks) filled += fill(*rank, index).trained;
    for (const auto& rank : ranks)
      ASSERT_EQ(rank->trained_tokens(index), filled) << "of " << world << ", index " << index;
  }
}

TEST(Batches, RanksKnowHowManyTokensTheyTrainTogether) {
  for (const RowLayout layout : layouts)
    for (const Masks masks : {Masks::none, Masks::random})
      for (const RowOrder order : {RowOrder::shuffled, RowOrder::in_order})
        for (const int world : {1, 5}) {
          BatchOptions options = row_of_16(layout);
          options.order = order;
          expect_sums_to_trained_tokens(ranks_of(options, world, masks));
        }
}

TEST(Batches, AnEpochHasAsManyMicroBatchesForAnyNumberOfRanks) {
  const BatchOptions options = row_of_16(RowLayout::packed);
  const Batches alone(two_shards(Masks::none), options);
  EXPECT_EQ(alone.micro_batches_per_epoch(), (alone.num_rows() + 2) / 3);
  for (const auto& rank : ranks_of(options, 5, Masks::none)) {
    EXPECT_EQ(rank->micro_batches_per_epoch(), alone.micro_batches_per_epoch());
    EXPECT_EQ(rank->trained_tokens_in_epoch(), alone.trained_tokens_in_epoch());
  }
}

TEST(Batches, ThePassMayEndBeforeARanksTurn) {
  const Batches batches(one(make_shard("a.tok", {{{3, 4}, {}}}, 9)), {.sequence_length = 2,
                                                                      .layout = RowLayout::separate,
                                                                      .order = RowOrder::in_order,
                                                                      .world = 2,
                                                                      .rank = 1});
  const MicroBatch batch = fill(batches, 0);
  EXPECT_EQ(batch.trained, 0);
  EXPECT_THAT(batch.labels, ElementsAre(-1, -1));
}

TEST(Batches, RefusesShardsOfDifferentTokenizers) {
  const std::vector<TokenDocument> documents = {{{1, 2}, {}}};
  std::vector<TokenShard> vocabularies;
  vocabularies.push_back(make_shard("a.tok", documents, 10));
  vocabularies.push_back(make_shard("b.tok", documents, 11));
  EXPECT_THROW(Batches(std::move(vocabularies), {.sequence_length = 4}), ConfigError);

  TokenShardInfo other = info_for(10);
  other.tokenizer_hash = 1;
  write_token_shard(temporary_path("c.tok"), other, documents);
  std::vector<TokenShard> hashes;
  hashes.push_back(make_shard("a.tok", documents, 10));
  hashes.emplace_back(temporary_path("c.tok"));
  EXPECT_THROW(Batches(std::move(hashes), {.sequence_length = 4}), ConfigError);
}

TEST(Batches, RefusesADataSetWithoutTrainedTokens) {
  const std::vector<TokenDocument> masked = {{{1, 2}, {true, false}}, {{3}, {}}};
  EXPECT_THROW(Batches(one(make_shard("a.tok", masked, 10)), {.sequence_length = 4}), ConfigError);
  EXPECT_THROW(Batches({}, {.sequence_length = 4}), ConfigError);
}

TEST(Batches, RefusesMicroBatchesThatAreEmptyOrTooLarge) {
  const std::vector<TokenDocument> documents = {{{1, 2}, {}}};
  EXPECT_THROW(Batches(one(make_shard("a.tok", documents, 10)), {.sequence_length = 0}),
               ConfigError);
  EXPECT_THROW(Batches(one(make_shard("a.tok", documents, 10)),
                       {.sequence_length = 1 << 20, .rows_per_micro_batch = 1 << 12}),
               ConfigError);
}

}  // namespace
}  // namespace strata
