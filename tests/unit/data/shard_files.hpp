#pragma once
// Helpers of the data tests: small corpora, temporary shards, and files spoilt on purpose.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "strata/core/philox.hpp"
#include "strata/data/token_shard.hpp"
#include "support/own_path.hpp"
#include "support/source_dir.hpp"

namespace strata {

// A folder of this process, gone when it ends.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(own_path("data_test")) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A path of its own for each test and name.
inline std::filesystem::path temporary_path(const std::string& name) {
  static const TemporaryFolder temporary;
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto folder = temporary.path() / info->test_suite_name() / info->name();
  std::filesystem::create_directories(folder);
  return folder / name;
}

inline std::filesystem::path golden_path(const std::string& name) {
  return source_dir() / "tests/golden/data" / name;
}

inline std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

enum class Masks : std::uint8_t { none, random };

inline std::vector<TokenDocument> random_documents(int count, std::uint64_t length_max,
                                                   std::uint64_t vocab_size, Masks masks,
                                                   std::uint64_t seed = 1) {
  PhiloxStream random(seed, 0);
  std::vector<TokenDocument> documents(static_cast<std::size_t>(count));
  for (TokenDocument& document : documents) {
    document.tokens.resize(1 + random.next_below(length_max));
    for (auto& token : document.tokens) {
      token = static_cast<std::uint32_t>(random.next_below(vocab_size));
    }
    if (masks == Masks::none) continue;
    for (std::size_t i = 0; i < document.tokens.size(); ++i) {
      document.trained.push_back(random.next_below(3) != 0);
    }
  }
  return documents;
}

inline TokenShardInfo info_for(std::uint64_t vocab_size, std::string split = "train") {
  TokenShardInfo info;
  info.vocab_size = vocab_size;
  info.tokenizer = "test";
  info.tokenizer_hash = 0xabcdef;
  info.source_hash = 0x1234;
  info.split = std::move(split);
  return info;
}

inline TokenShard make_shard(const std::string& name, const std::vector<TokenDocument>& documents,
                             std::uint64_t vocab_size) {
  const auto path = temporary_path(name);
  write_token_shard(path, info_for(vocab_size), documents);
  return TokenShard(path);
}

// The documents as they went in, masks spelled out.
inline std::vector<TokenDocument> documents_of(const TokenShard& shard) {
  std::vector<TokenDocument> documents(shard.info().num_documents);
  for (std::uint64_t d = 0; d < documents.size(); ++d) {
    for (std::uint64_t i = shard.document_begin(d); i < shard.document_end(d); ++i) {
      documents[d].tokens.push_back(shard.token(i));
      documents[d].trained.push_back(shard.trained(i));
    }
  }
  return documents;
}

}  // namespace strata
