#include "io/store/store_json_reader.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "io/store/store_description.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using PlainJson = nlohmann::json;

// Nothing that we write is deeper, or has more values.
constexpr std::size_t depth_max = 5;
constexpr std::size_t values_max = 16 * store_tiles_max + 4096;

[[noreturn]] void fail_in(const std::string& path, const std::string& what) {
  throw FormatError(fmt::format("{}: {}", path, what));
}

// Goes through a text before anything is built of it. (A parser callback could do this, but then
// the parser looks through a whole list at the end of each of its entries.)
class Bounds : public nlohmann::json_sax<PlainJson> {
 public:
  explicit Bounds(const std::string& path) : path_(path) {}

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return count(); }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const PlainJson::exception& error) override {
    fail_in(path_, fmt::format("it is no JSON: {}", error.what()));
  }

 private:
  bool count() {
    if (++num_values_ > values_max) fail_in(path_, "it has too many values");
    return true;
  }
  bool enter() {
    if (++depth_ > depth_max) fail_in(path_, "its values are nested too deeply");
    return count();
  }
  bool leave() {
    --depth_;
    return true;
  }

  const std::string& path_;
  std::size_t depth_ = 0, num_values_ = 0;
};

PlainJson parse_bounded(std::string_view text, const std::string& path) {
  Bounds bounds(path);
  PlainJson::sax_parse(text, &bounds);
  try {
    return PlainJson::parse(text);
  } catch (const PlainJson::exception& error) {
    fail_in(path, fmt::format("it is no JSON: {}", error.what()));
  }
}

}  // namespace

StoreJsonReader::StoreJsonReader(std::shared_ptr<const PlainJson> root, const PlainJson* object,
                                 std::shared_ptr<const std::string> path, std::string place)
    : root_(std::move(root)), object_(object), path_(std::move(path)), place_(std::move(place)) {
  if (!object_->is_object()) fail("it is no JSON object");
}

StoreJsonReader StoreJsonReader::parse(std::string_view text, const std::string& path) {
  auto root = std::make_shared<const PlainJson>(parse_bounded(text, path));
  const PlainJson* object = root.get();
  return {std::move(root), object, std::make_shared<const std::string>(path), ""};
}

void StoreJsonReader::fail(const std::string& what) const { fail_in(*path_, place_ + what); }

const PlainJson& StoreJsonReader::at(const char* key) const {
  const auto found = object_->find(key);
  if (found == object_->end()) fail(fmt::format("'{}' is missing", key));
  return *found;
}

bool StoreJsonReader::has(const char* key) const { return object_->contains(key); }

std::string StoreJsonReader::text(const char* key) const {
  const PlainJson& value = at(key);
  if (!value.is_string()) fail(fmt::format("'{}' is no text", key));
  return value.get<std::string>();
}

bool StoreJsonReader::flag(const char* key) const {
  const PlainJson& value = at(key);
  if (!value.is_boolean()) fail(fmt::format("'{}' is neither true nor false", key));
  return value.get<bool>();
}

std::uint64_t StoreJsonReader::number(const char* key, std::uint64_t low,
                                      std::uint64_t high) const {
  const PlainJson& value = at(key);
  if (!value.is_number_unsigned()) fail(fmt::format("'{}' is no whole number", key));
  const auto number = value.get<std::uint64_t>();
  if (number < low || number > high)
    fail(fmt::format("'{}' is {}; it must be from {} to {}", key, number, low, high));
  return number;
}

double StoreJsonReader::real(const char* key) const {
  const PlainJson& value = at(key);
  if (!value.is_number()) fail(fmt::format("'{}' is no number", key));
  return value.get<double>();
}

std::vector<std::uint64_t> StoreJsonReader::numbers(const char* key) const {
  const PlainJson& values = at(key);
  if (!values.is_array()) fail(fmt::format("'{}' is no list", key));
  std::vector<std::uint64_t> numbers;
  for (const PlainJson& value : values) {
    if (!value.is_number_unsigned()) fail(fmt::format("'{}' holds no whole number", key));
    numbers.push_back(value.get<std::uint64_t>());
  }
  return numbers;
}

std::vector<StoreJsonReader> StoreJsonReader::rows(const char* key, std::size_t rows_max) const {
  const PlainJson& values = at(key);
  if (!values.is_array()) fail(fmt::format("'{}' is no list", key));
  if (values.size() > rows_max)
    fail(fmt::format("'{}' has {} entries; at most {} are accepted", key, values.size(), rows_max));
  std::vector<StoreJsonReader> rows;
  rows.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    rows.push_back({root_, &values[i], path_, fmt::format("{}{}[{}]: ", place_, key, i)});
  return rows;
}

}  // namespace strata
