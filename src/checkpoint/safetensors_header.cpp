#include "safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "display.hpp"
#include "safetensors_dtype.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strict_json.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr std::size_t rank_max = 64;

// Reads one tensor's entry; `where` names file and tensor.
class EntryParser {
 public:
  EntryParser(const std::string& source, const std::string& name, const json& value)
      : where_(fmt::format("{}: tensor {}", source, quote_name(name))), value_(value) {
    entry_.name = name;
  }

  TensorEntry parse() {
    if (!value_.is_object()) fail("is no object of dtype, shape and data_offsets");
    read_shape();
    read_offsets();
    read_dtype();
    return std::move(entry_);
  }

 private:
  [[noreturn]] void fail(std::string_view rule) const {
    throw FormatError(fmt::format("{} {}", where_, rule));
  }

  const json& field(const char* key) const {
    const auto found = value_.find(key);
    if (found == value_.end()) fail(fmt::format("lacks '{}'", key));
    return *found;
  }

  void read_shape() {
    const json& shape = field("shape");
    if (!shape.is_array()) fail("has a shape that is no list");
    if (shape.size() > rank_max) {
      fail(fmt::format("has {} dimensions; at most {} are accepted", shape.size(), rank_max));
    }
    for (const json& size : shape) {
      if (!size.is_number_unsigned() ||
          size.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        fail("has a shape with a size that is no whole number in [0, 2^63)");
      }
      entry_.shape.push_back(size.get<std::int64_t>());
    }
  }

  void read_offsets() {
    const json& offsets = field("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail("has data_offsets that are not two whole numbers");
    }
    entry_.begin = offsets[0].get<std::uint64_t>();
    entry_.end = offsets[1].get<std::uint64_t>();
    if (entry_.begin > entry_.end) fail("has data_offsets that run backwards");
  }

  void read_dtype() {
    const json& dtype = field("dtype");
    if (!dtype.is_string()) fail("has a dtype that is no text");
    const SafetensorsDType* known = find_safetensors_dtype(dtype.get_ref<const std::string&>());
    if (known == nullptr) {
      fail(
          fmt::format("has the unknown dtype {}", quote_name(dtype.get_ref<const std::string&>())));
    }
    entry_.dtype_text = known->name;
    entry_.dtype = known->dtype;
    check_bytes(known->bits);
  }

  void check_bytes(int bits_per_element) const {
    std::int64_t bits = bits_per_element;
    for (const std::int64_t size : entry_.shape) {
      if (__builtin_mul_overflow(bits, size, &bits)) fail("has a shape whose size overflows");
    }
    const std::uint64_t bytes = entry_.end - entry_.begin;
    if (bits % 8 != 0) fail("does not end at a byte boundary");
    if (static_cast<std::uint64_t>(bits) / 8 != bytes) {
      fail(fmt::format("has {} bytes of data, but {} {} takes {}", bytes, entry_.dtype_text,
                       shape_text(entry_.shape), bits / 8));
    }
  }

  std::string where_;
  const json& value_;
  TensorEntry entry_;
};

std::map<std::string, std::string> parse_metadata(const json& value, const std::string& source) {
  if (!value.is_object()) throw FormatError(source + ": __metadata__ is no object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      throw FormatError(fmt::format("{}: __metadata__ {} is no text", source, quote_name(key)));
    }
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Sorted by offset, the tensors must tile the data exactly.
void check_coverage(const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes,
                    const std::string& source) {
  std::uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin != covered) {
      throw FormatError(
          fmt::format("{}: tensor {} begins at data byte {}, but the one before ends at {}: {}",
                      source, quote_name(tensor.name), tensor.begin, covered,
                      tensor.begin > covered ? "a gap" : "an overlap"));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw FormatError(
        fmt::format("{}: the tensors cover {} bytes of data, but the file has {}: it is {}", source,
                    covered, data_bytes, covered > data_bytes ? "cut short" : "too long"));
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& source) {
  if (!text.starts_with('{')) throw FormatError(source + ": the header does not begin with '{'");
  SafetensorsHeader header;
  // Each entry is taken as soon as it is parsed, so a large header is never held as a document.
  parse_strict_json(text, source, [&](const std::string& key, const json& value) {
    if (key == "__metadata__") {
      header.metadata = parse_metadata(value, source);
    } else {
      header.tensors.push_back(EntryParser(source, key, value).parse());
    }
    return false;
  });
  std::ranges::sort(header.tensors, {}, [](const TensorEntry& tensor) {
    return std::tie(tensor.begin, tensor.end, tensor.name);
  });
  check_coverage(header.tensors, data_bytes, source);
  return header;
}

std::string safetensors_header_text(const std::vector<TensorEntry>& tensors) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  for (const TensorEntry& tensor : tensors) {
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        json(tensor.name).dump(), tensor.dtype_text, json(tensor.shape).dump(),
                        tensor.begin, tensor.end);
  }
  text += '}';
  text.resize(align_up(text.size(), 8), ' ');
  return text;
}

}  // namespace strata
