#pragma once
// A StoreJsonReader takes values of known types out of one JSON object of a hostile file: whatever
// is missing, of another type or out of range is a FormatError that names file, place and key.
//
// Thread contract: a value.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

class StoreJsonReader {
 public:
  static StoreJsonReader parse(std::string_view text, const std::string& path);

  bool has(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;
  std::uint64_t number(const char* key, std::uint64_t low, std::uint64_t high) const;
  double real(const char* key) const;  // whole or not
  std::vector<std::uint64_t> numbers(const char* key) const;
  std::vector<StoreJsonReader> rows(const char* key, std::size_t rows_max) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  StoreJsonReader(std::shared_ptr<const nlohmann::json> root, const nlohmann::json* object,
                  std::shared_ptr<const std::string> path, std::string place);
  const nlohmann::json& at(const char* key) const;

  std::shared_ptr<const nlohmann::json> root_;
  const nlohmann::json* object_;  // within root_
  std::shared_ptr<const std::string> path_;
  std::string place_;  // "tiles[3]: "
};

}  // namespace strata
