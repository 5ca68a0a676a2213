#include "strata/data/corpus.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "strata/core/error.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<TokenDocument> numbered(std::uint32_t count) {
  std::vector<TokenDocument> documents;
  for (std::uint32_t i = 0; i < count; ++i) documents.push_back({{i}, {}});
  return documents;
}

std::vector<std::uint32_t> numbers(const std::vector<TokenDocument>& documents) {
  std::vector<std::uint32_t> result;
  for (const auto& document : documents) result.push_back(document.tokens[0]);
  return result;
}

TEST(SplitCorpus, HoldsOutTheShareAskedForInOrder) {
  const CorpusSplit split = split_corpus(numbered(200), 0.1, 42);
  EXPECT_EQ(split.heldout.size(), 20u);
  auto all = numbers(split.train), held = numbers(split.heldout);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()) && std::is_sorted(held.begin(), held.end()));
  all.insert(all.end(), held.begin(), held.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, numbers(numbered(200)));
}

// What scripts/prepare.py chooses: python -c "sorted(range(10), key=lambda i: xxh3_64(pack('<QQ',
// 42, i)))[:3]".
TEST(SplitCorpus, ChoosesAsThePythonScriptDoes) {
  EXPECT_THAT(numbers(split_corpus(numbered(10), 0.3, 42).heldout), ElementsAre(0, 5, 9));
}

TEST(SplitCorpus, HoldsOutNoneForZeroAndOneAtLeastOtherwise) {
  EXPECT_THAT(split_corpus(numbered(5), 0, 1).heldout, IsEmpty());
  EXPECT_EQ(split_corpus(numbered(5), 0.001, 1).heldout.size(), 1u);
  EXPECT_EQ(split_corpus(numbered(5), 0.999, 1).heldout.size(), 4u);
}

TEST(SplitCorpus, RefusesImpossibleShares) {
  EXPECT_THROW(split_corpus(numbered(5), 1, 1), ConfigError);
  EXPECT_THROW(split_corpus(numbered(5), -0.1, 1), ConfigError);
  EXPECT_THROW(split_corpus(numbered(5), std::numeric_limits<double>::quiet_NaN(), 1), ConfigError);
  EXPECT_THROW(split_corpus(numbered(1), 0.5, 1), ConfigError);
}

TEST(CorpusReport, CountsWhatIsTrainedUntrainedAndCut) {
  const std::vector<TokenDocument> documents = {
      {{1, 2, 3, 4, 5}, {}}, {{1, 2}, {true, false}}, {{1}, {}}, {{1, 2, 3}, {false, true, false}}};
  const CorpusReport report = report_on(documents, 3);
  EXPECT_EQ(report.num_documents, 4u);
  EXPECT_EQ(report.num_tokens, 11u);
  EXPECT_EQ(report.trained_tokens, 5u);
  EXPECT_EQ(report.untrained_documents, 2u);
  EXPECT_EQ(report.long_documents, 1u);
  EXPECT_EQ(report.cut_tokens, 2u);
  EXPECT_THAT(warnings(report, 3), ElementsAre(HasSubstr("2 documents have no trained token"),
                                               HasSubstr("cut off 2 tokens (18.2%)")));
  EXPECT_THAT(warnings(report_on(numbered(0), 3), 3), IsEmpty());
}

}  // namespace
}  // namespace strata
