#include "strata/data/token_shard.hpp"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <cstring>
#include <functional>

#include "strata/core/error.hpp"
#include "unit/data/shard_files.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

void expect_round_trip(std::uint64_t vocab_size, Masks masks) {
  const auto documents = random_documents(40, 30, vocab_size, masks);
  const TokenShard shard = make_shard("a.tok", documents, vocab_size);
  EXPECT_EQ(shard.info().has_mask, masks == Masks::random);
  EXPECT_EQ(shard.info().vocab_size, vocab_size);
  const auto found = documents_of(shard);
  ASSERT_EQ(found.size(), documents.size());
  for (std::size_t d = 0; d < documents.size(); ++d) {
    EXPECT_EQ(found[d].tokens, documents[d].tokens);
    const auto all = std::vector<bool>(documents[d].tokens.size(), true);
    EXPECT_EQ(found[d].trained, documents[d].trained.empty() ? all : documents[d].trained);
  }
}

TEST(TokenShard, HoldsWhatWasWrittenIn16Bits) { expect_round_trip(65536, Masks::none); }
TEST(TokenShard, HoldsWhatWasWrittenIn32Bits) { expect_round_trip(65537, Masks::none); }
TEST(TokenShard, HoldsMasksIn16Bits) { expect_round_trip(300, Masks::random); }
TEST(TokenShard, HoldsMasksIn32Bits) { expect_round_trip(1 << 20, Masks::random); }

TEST(TokenShard, KeepsTheFactsOfItsInfo) {
  const TokenShard shard = make_shard("a.tok", {{{1, 2, 3}, {}}, {{4}, {}}}, 10);
  EXPECT_EQ(shard.info().num_tokens, 4u);
  EXPECT_EQ(shard.info().num_documents, 2u);
  EXPECT_EQ(shard.info().tokenizer, "test");
  EXPECT_EQ(shard.info().tokenizer_hash, 0xabcdefu);
  EXPECT_EQ(shard.info().source_hash, 0x1234u);
  EXPECT_EQ(shard.info().split, "train");
}

TEST(TokenShard, ReachesSizesAcrossTheWriteBuffer) {
  const auto documents = random_documents(3, 900'000, 50'000, Masks::random, 5);
  const TokenShard shard = make_shard("a.tok", documents, 50'000);
  const auto found = documents_of(shard);
  for (std::size_t d = 0; d < documents.size(); ++d) {
    EXPECT_TRUE(found[d].tokens == documents[d].tokens);
    EXPECT_TRUE(found[d].trained == documents[d].trained);
  }
}

TEST(TokenShardWriter, LeavesNoPartialFileBehind) {
  const auto path = temporary_path("a.tok");
  write_token_shard(path, info_for(10), std::vector<TokenDocument>{{{1, 2}, {}}});
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST(TokenShardWriter, RefusesNoDocumentsAnEmptyOneAndForeignTokens) {
  const auto path = temporary_path("never.tok");
  using Documents = std::vector<TokenDocument>;
  EXPECT_THROW(write_token_shard(path, info_for(10), Documents{}), ConfigError);
  EXPECT_THROW(write_token_shard(path, info_for(10), Documents{{{}, {}}}), ConfigError);
  EXPECT_THROW(write_token_shard(path, info_for(10), Documents{{{10}, {}}}), ConfigError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TokenShardWriter, NamesTheFolderThatIsMissing) {
  const auto path = temporary_path("a.tok").parent_path() / "absent" / "a.tok";
  EXPECT_THROW(write_token_shard(path, info_for(10), std::vector<TokenDocument>{{{1}, {}}}),
               SystemError);
}

TEST(ByteTokenizer, TurnsTextIntoBytesAndBack) {
  const std::string text("na\xc3\xafve\0\xff", 8);
  const TokenDocument document = byte_tokenize(text);
  ASSERT_EQ(document.tokens.size(), text.size() + 1);
  EXPECT_EQ(document.tokens[2], 0xc3u);
  EXPECT_EQ(document.tokens.back(), byte_tokenizer_end);
  EXPECT_EQ(byte_detokenize(document.tokens), text);
}

TEST(ByteTokenizer, RefusesIdsOutsideItsVocabulary) {
  EXPECT_THROW(byte_detokenize(std::vector<std::uint32_t>{257}), FormatError);
}

// Hostile files: a good one (u16, 3 documents of 40 tokens in all, masked), spoilt in one way each.
class HostileShard : public ::testing::Test {
 protected:
  static constexpr std::size_t num_tokens_at = 16, num_documents_at = 24, vocab_at = 32,
                               tokens_at = 40, documents_at = 48, mask_at = 56, hash_at = 64,
                               name_at = 80;

  void SetUp() override {
    std::vector<TokenDocument> documents(3);
    for (auto& document : documents) document.tokens.assign(10, 5);
    documents[2].tokens.assign(20, 6);
    documents[0].trained.assign(10, false);
    path_ = temporary_path("bad.tok");
    write_token_shard(path_, info_for(300), documents);
    bytes_ = file_bytes(path_);
  }

  template <typename T>
  void set(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof(value));
  }
  std::uint64_t get(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }
  // Makes the checksum right, so that the rule under test is what refuses the file.
  void sign() {
    set(hash_at, std::uint64_t{XXH3_64bits(bytes_.data() + 4096, bytes_.size() - 4096)});
  }

  void expect_refused(const std::string& reason,
                      TokenShardCheck verify = TokenShardCheck::checksum) {
    write_bytes(path_, bytes_);
    try {
      const TokenShard shard(path_, verify);
      FAIL() << "opened, where '" << reason << "' was expected";
    } catch (const FormatError& error) {
      EXPECT_THAT(error.what(), HasSubstr(reason));
      EXPECT_THAT(error.what(), HasSubstr(path_.string()));
    }
  }

  std::filesystem::path path_;
  std::string bytes_;
};

TEST_F(HostileShard, IsGoodBeforeItIsSpoilt) { EXPECT_NO_THROW(TokenShard{path_}); }

TEST_F(HostileShard, IsRefusedAtAnyTruncation) {
  const std::string whole = bytes_;
  for (std::size_t size = 0; size < whole.size(); size += size < 4096 ? 97 : 1) {
    bytes_ = whole.substr(0, size);
    expect_refused("bytes", TokenShardCheck::header);
  }
}

TEST_F(HostileShard, IsRefusedWithBytesAtTheEnd) {
  bytes_ += '\0';
  expect_refused("accounts for");
}

TEST_F(HostileShard, IsRefusedForWrongMagic) {
  bytes_[7] = '2';
  expect_refused("STRATOK1");
}

TEST_F(HostileShard, IsRefusedForAnotherVersion) {
  set(8, std::uint32_t{2});
  expect_refused("version 2");
}

TEST_F(HostileShard, IsRefusedWhenTokenBytesAndVocabularyDisagree) {
  set(12, std::uint32_t{4});
  expect_refused("4 bytes a token");
}

TEST_F(HostileShard, IsRefusedForAVocabularyOfNoneOrTooMany) {
  set(vocab_at, std::uint64_t{0});
  expect_refused("vocabulary of 0");
  set(vocab_at, std::uint64_t{1} << 40);
  expect_refused("vocabulary of 1099511627776");
}

TEST_F(HostileShard, IsRefusedForCountsThatWouldOverflow) {
  for (std::uint64_t count : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 20}) {
    set(num_tokens_at, count);
    expect_refused("truncated?");
  }
}

TEST_F(HostileShard, IsRefusedForMoreDocumentsThanTokensOrNone) {
  for (std::uint64_t count : {std::uint64_t{0}, std::uint64_t{41}, ~std::uint64_t{0}}) {
    set(num_documents_at, count);
    expect_refused("cannot be");
  }
}

TEST_F(HostileShard, IsRefusedForOffsetsPastTheEnd) {
  for (std::size_t part : {tokens_at, documents_at, mask_at}) {
    const std::uint64_t good = get(part);
    for (std::uint64_t offset : {std::uint64_t{1} << 40, ~std::uint64_t{63}}) {
      set(part, offset);
      expect_refused("truncated?");
    }
    set(part, good);
  }
}

TEST_F(HostileShard, IsRefusedForUnalignedAndOverlappingParts) {
  const std::uint64_t good = get(documents_at);
  set(documents_at, good + 8);
  expect_refused("no multiple of 64");
  set(documents_at, get(tokens_at));
  expect_refused("overlap");
  set(documents_at, good);
  set(tokens_at, std::uint64_t{64});
  expect_refused("overlap");
}

TEST_F(HostileShard, IsRefusedForAnyFlippedByteOfThePayload) {
  for (std::size_t offset = 4096; offset < bytes_.size(); offset += 7) {
    bytes_[offset] = static_cast<char>(bytes_[offset] ^ 0x10);
    expect_refused("checksum");
    bytes_[offset] = static_cast<char>(bytes_[offset] ^ 0x10);
  }
}

TEST_F(HostileShard, IsRefusedForATokenOutsideTheVocabulary) {
  set(get(tokens_at) + 2 * 17, std::uint16_t{300});
  sign();
  expect_refused("token 17 is 300");
}

TEST_F(HostileShard, RefusesAForeignTokenWhenReadUnverified) {
  set(get(tokens_at) + 2 * 17, std::uint16_t{65535});
  write_bytes(path_, bytes_);
  const TokenShard shard(path_, TokenShardCheck::header);
  EXPECT_EQ(shard.token(16), 5u);
  EXPECT_THROW(shard.token(17), FormatError);
}

TEST_F(HostileShard, IsRefusedForDocumentsThatDoNotGoUp) {
  set(get(documents_at) + 16, std::uint64_t{10});
  sign();
  expect_refused("does not start after the one before");
  set(get(documents_at) + 8, std::uint64_t{12});
  sign();
  expect_refused("does not start after the one before", TokenShardCheck::header);
}

TEST_F(HostileShard, IsRefusedForDocumentsOutsideTheTokens) {
  set(get(documents_at) + 16, std::uint64_t{40});
  sign();
  expect_refused("past the last token");
  set(get(documents_at), std::uint64_t{1});
  sign();
  expect_refused("must start at token 0");
}

TEST_F(HostileShard, IsRefusedForNamesWithControlCharacters) {
  bytes_[name_at] = '\x1b';
  expect_refused("control characters");
}

TEST(TokenShard, NamesAFileThatIsAbsentOrAFolder) {
  EXPECT_THROW(TokenShard(temporary_path("absent.tok")), SystemError);
  EXPECT_THROW(TokenShard(temporary_path("x").parent_path()), FormatError);
}

}  // namespace
}  // namespace strata
