#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "display.hpp"
#include "elements.hpp"
#include "hf_shards.hpp"
#include "name_list.hpp"
#include "safetensors_dtype.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::string_view embedding_name = "model.embed_tokens.weight";
constexpr std::string_view head_name = "lm_head.weight";
constexpr std::int64_t chunk_elements = tensor_read_elements;

struct Located {
  const SafetensorsReader* shard = nullptr;
  const TensorEntry* entry = nullptr;
};
using LocatedByName = std::map<std::string_view, Located>;

// What old releases of transformers stored beside the weights; recomputed from the config.
bool is_ignored(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

LocatedByName locate_all(const std::vector<SafetensorsReader>& shards) {
  LocatedByName located;
  for (const SafetensorsReader& shard : shards) {
    for (const TensorEntry& entry : shard.tensors()) located[entry.name] = {&shard, &entry};
  }
  return located;
}

// Compares folder and expectation, gathering every difference before it throws.
class Comparison {
 public:
  Comparison(const LocatedByName& located, std::span<const ExpectedTensor> expected)
      : located_(located) {
    for (const ExpectedTensor& tensor : expected) check_expected(tensor);
    for (const auto& [name, where] : located) check_held(name);
  }

  bool has_tied_copy() const { return has_tied_copy_; }

  void throw_if_different(const std::filesystem::path& folder) const {
    std::string text;
    const auto report = [&text](std::string_view what, const NameList& names) {
      if (names.count() > 0)
        text += fmt::format("\n  {} ({}): {}", what, names.count(), names.text());
    };
    report("missing", missing_);
    report("unknown", unknown_);
    report("wrong shape", wrong_shape_);
    report("wrong dtype (F32, F16 and BF16 are accepted)", wrong_dtype_);
    if (text.empty()) return;
    if (head_is_missing_) {
      text +=
          "\n  a model without lm_head.weight needs \"tie_word_embeddings\": true in config.json";
    }
    throw FormatError(fmt::format("the tensors of {} are not those its config.json asks for:{}",
                                  folder.string(), text));
  }

 private:
  void check_expected(const ExpectedTensor& tensor) {
    expected_.emplace(tensor.name);
    const auto found = located_.find(tensor.name);
    if (found == located_.end()) {
      head_is_missing_ |= tensor.name == head_name;
      return missing_.add(tensor.name);
    }
    const TensorEntry& entry = *found->second.entry;
    if (entry.shape != tensor.shape) {
      wrong_shape_.add(fmt::format("{} {} instead of {}", tensor.name, shape_text(entry.shape),
                                   shape_text(tensor.shape)));
    }
    if (!entry.dtype || !is_weight_dtype(*entry.dtype)) {
      wrong_dtype_.add(fmt::format("{} is {}", tensor.name, entry.dtype_text));
    }
  }

  void check_held(std::string_view name) {
    if (expected_.contains(name) || is_ignored(name)) return;
    if (name == head_name && expected_.contains(embedding_name)) {
      has_tied_copy_ = true;
    } else {
      unknown_.add(quote_name(name));
    }
  }

  const LocatedByName& located_;
  std::set<std::string_view> expected_;
  NameList missing_, unknown_, wrong_shape_, wrong_dtype_;
  bool has_tied_copy_ = false, head_is_missing_ = false;
};

bool equal_bytes(const Located& a, const Located& b) {
  if (a.entry->dtype != b.entry->dtype || a.entry->shape != b.entry->shape) return false;
  const std::int64_t count = a.entry->count(), width = dtype_bytes(*a.entry->dtype);
  std::vector<std::byte> left(static_cast<std::size_t>(chunk_elements * width)), right(left.size());
  for (std::int64_t first = 0; first < count; first += chunk_elements) {
    const std::int64_t piece = std::min(chunk_elements, count - first);
    const auto bytes = static_cast<std::size_t>(piece * width);
    a.shard->read(*a.entry, first, piece, std::span(left).first(bytes));
    b.shard->read(*b.entry, first, piece, std::span(right).first(bytes));
    if (std::memcmp(left.data(), right.data(), bytes) != 0) return false;
  }
  return true;
}

}  // namespace

struct HfWeights::Impl {
  Impl(const std::filesystem::path& folder, std::span<const ExpectedTensor> expected)
      : shards(open_hf_shards(folder)), located(locate_all(shards)) {
    const Comparison comparison(located, expected);
    comparison.throw_if_different(folder);
    if (comparison.has_tied_copy()) check_tied_copy(folder);
    for (const ExpectedTensor& tensor : expected) {
      const TensorEntry& entry = *find(tensor.name).entry;
      total_bytes += entry.end - entry.begin;
    }
  }

  void check_tied_copy(const std::filesystem::path& folder) const {
    if (equal_bytes(find(head_name), find(embedding_name))) return;
    throw FormatError(
        fmt::format("{}: config.json ties lm_head.weight to model.embed_tokens.weight, but the "
                    "folder holds both "
                    "and they differ; set \"tie_word_embeddings\": false to train them apart",
                    folder.string()));
  }

  const Located& find(std::string_view name) const {
    const auto found = located.find(name);
    ensure(found != located.end());
    return found->second;
  }

  std::vector<SafetensorsReader> shards;
  LocatedByName located;
  std::uint64_t total_bytes = 0;
};

HfWeights::HfWeights(const std::filesystem::path& folder, std::span<const ExpectedTensor> expected)
    : impl_(std::make_unique<Impl>(folder, expected)) {}
HfWeights::~HfWeights() = default;

DType HfWeights::dtype(const std::string& name) const { return *impl_->find(name).entry->dtype; }

std::uint64_t HfWeights::total_bytes() const { return impl_->total_bytes; }

void HfWeights::read_f32(const std::string& name, std::int64_t first,
                         std::span<float> target) const {
  const Located& located = impl_->find(name);
  const DType dtype = *located.entry->dtype;
  if (dtype == DType::f32) {
    located.shard->read(*located.entry, first, std::ssize(target), std::as_writable_bytes(target));
    return;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(
      std::min<std::int64_t>(chunk_elements, std::ssize(target)) * dtype_bytes(dtype)));
  while (!target.empty()) {
    const std::int64_t piece = std::min<std::int64_t>(chunk_elements, std::ssize(target));
    const auto bytes =
        std::span(stored).first(static_cast<std::size_t>(piece * dtype_bytes(dtype)));
    located.shard->read(*located.entry, first, piece, bytes);
    to_f32(bytes, dtype, target.first(static_cast<std::size_t>(piece)));
    target = target.subspan(static_cast<std::size_t>(piece));
    first += piece;
  }
}

}  // namespace strata
