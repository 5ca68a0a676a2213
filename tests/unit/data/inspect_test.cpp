#include "strata/data/inspect.hpp"

#include <gmock/gmock.h>

#include "src/data/utf8.hpp"
#include "strata/core/error.hpp"
#include "strata/data/text_source.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Inspect, ShowsHeaderFactsAndDecodedDocumentsWithMasks) {
  EXPECT_THAT(
      inspect_token_shard(golden_path("byte.tok"), {.samples = 4}),
      AllOf(
          HasSubstr("checksum verified"), HasSubstr("4, 33.5 tokens on average"),
          HasSubstr("byte (0000000000000000)"), HasSubstr("split       train"),
          HasSubstr("  | In the beginning was the Word,\n  | and the Word was with God.<|end|>\n"),
          HasSubstr("⟦Q: How much is 12 + 30?\n  | A:⟧ 42, naïvely.<|end|>"),
          HasSubstr("⟦Größe? ⟧日本語 🎉<|end|>")));
}

TEST(Inspect, ShowsTextOfAByteLevelBpeShardWithItsTokenizer) {
  const auto detokenizer = load_detokenizer(golden_path("tokenizer.json"));
  const auto text =
      inspect_token_shard(golden_path("bpe.tok"), {.samples = 4, .detokenizer = detokenizer.get()});
  EXPECT_THAT(text, AllOf(HasSubstr("⟦Q: How much is 12 + 30?\n  | A:⟧ 42, naïvely.<|endoftext|>"),
                          HasSubstr("⟦Größe? ⟧日本語 🎉<|endoftext|>"),
                          HasSubstr("It's done.<|endoftext|>"), Not(HasSubstr("WARNING"))));
}

TEST(Inspect, ShowsThatOnlyTheAssistantIsTrainedInAChat) {
  const auto detokenizer = load_detokenizer(golden_path("tokenizer.json"));
  const auto text = inspect_token_shard(golden_path("chat.tok"),
                                        {.samples = 2, .detokenizer = detokenizer.get()});
  EXPECT_THAT(
      text,
      HasSubstr("  | ⟦<|user|>Say hi.<|endoftext|>\n  | <|assistant|>⟧Hi!<|endoftext|>"
                "⟦\n  | <|user|>And é?<|endoftext|>\n  | <|assistant|>⟧É, then.<|endoftext|>⟦"));
  EXPECT_THAT(text, HasSubstr("  | ⟦<|user|>Anyone there?<|endoftext|>"));
}

TEST(Inspect, ShowsIdsWithoutATokenizer) {
  EXPECT_THAT(inspect_token_shard(golden_path("wide.tok")),
              AllOf(HasSubstr("shown as ids"), HasSubstr("  | 7 99999 65536\n"),
                    HasSubstr("  | ⟦70000⟧ 1\n")));
}

TEST(Inspect, WarnsOfAnotherTokenizer) {
  const auto detokenizer = load_detokenizer(golden_path("tokenizer.json"));
  EXPECT_THAT(inspect_token_shard(golden_path("wide.tok"), {.detokenizer = detokenizer.get()}),
              AllOf(HasSubstr("WARNING"), HasSubstr("<|id 99999|>")));
}

TEST(Inspect, CutsLongDocumentsAndChoosesBySeed) {
  const auto path = temporary_path("a.tok");
  TokenShardInfo info = info_for(byte_tokenizer_vocab);
  info.tokenizer = "byte";
  std::vector<TokenDocument> documents;
  for (int i = 0; i < 50; ++i) documents.push_back(byte_tokenize(std::to_string(i) + " is long"));
  write_token_shard(path, info, documents);
  const auto text = inspect_token_shard(path, {.samples = 2, .seed = 1, .tokens_max = 4});
  EXPECT_THAT(text, HasSubstr("more tokens"));
  EXPECT_THAT(text, Not(HasSubstr("long")));
  EXPECT_NE(text, inspect_token_shard(path, {.samples = 2, .seed = 2, .tokens_max = 4}));
}

TEST(Printable, EscapesWhatATerminalMustNotGet) {
  EXPECT_EQ(printable("a\x1b[31m\n\tä"), "a\\x1b[31m\n\tä");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Detokenizer, RefusesOtherKindsByName) {
  const auto path = temporary_path("tokenizer.json");
  const auto expect_refused = [&](const std::string& json, const std::string& reason) {
    write_bytes(path, json);
    try {
      load_detokenizer(path);
      FAIL() << json;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  };
  expect_refused(R"({"model": {"type": "Unigram", "vocab": []}})", "Unigram");
  expect_refused(R"({"model": {"type": "BPE", "vocab": {}}, "decoder": {"type": "Fuse"}})",
                 "not byte-level");
  expect_refused(
      R"({"model": {"type": "BPE", "vocab": {"a": "x"}}, "decoder": {"type": "ByteLevel"}})",
      "no tokenizer.json");
  expect_refused("{", "no tokenizer.json");
  expect_refused("[]", "no tokenizer.json");
  EXPECT_THROW(load_detokenizer(temporary_path("absent.json")), SystemError);
}

TEST(Detokenizer, FindsByteLevelWithinASequence) {
  const auto path = temporary_path("tokenizer.json");
  write_bytes(path, R"({"model": {"type": "BPE", "vocab": {"Ġa": 0, "Ċ": 1}}, "decoder": null,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}})");
  EXPECT_EQ(load_detokenizer(path)->decode(std::vector<std::uint32_t>{0, 1, 2}), " a\n<|id 2|>");
}

}  // namespace
}  // namespace strata
