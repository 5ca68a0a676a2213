#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <system_error>

#include "display.hpp"
#include "safetensors_dtype.hpp"
#include "safetensors_header.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"
#include "verified_file.hpp"

namespace strata {
namespace {

void check_names(const std::vector<TensorToWrite>& tensors) {
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    ensure(tensor.name != "__metadata__" && names.insert(tensor.name).second);
  }
}

TensorEntry entry_of(const TensorToWrite& tensor) {
  TensorEntry entry;
  entry.name = tensor.name;
  entry.dtype_text = safetensors_name(tensor.dtype);
  entry.dtype = tensor.dtype;
  entry.shape = tensor.shape;
  entry.end = static_cast<std::uint64_t>(entry.count() * dtype_bytes(tensor.dtype));
  return entry;
}

// As the reference writer: wide types first, then by name; offsets follow that order.
std::vector<std::size_t> place(std::vector<TensorEntry>& entries) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t index) {
    return std::pair(-safetensors_rank(*entries[index].dtype),
                     std::string_view(entries[index].name));
  });
  std::uint64_t offset = 0;
  for (const std::size_t index : order) {
    entries[index].begin = offset;
    offset = entries[index].end += offset;
  }
  return order;
}

std::string header_text(const std::vector<TensorEntry>& entries,
                        const std::vector<std::size_t>& order) {
  std::vector<TensorEntry> ordered;
  for (const std::size_t index : order) ordered.push_back(entries[index]);
  return safetensors_header_text(ordered);
}

}  // namespace

struct SafetensorsWriter::File {
  File(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors) : file(path) {
    for (const TensorToWrite& tensor : tensors) entries.push_back(entry_of(tensor));
    const std::string text = header_text(entries, place(entries));
    const std::uint64_t length = text.size();
    data_offset = sizeof(length) + length;
    try {
      file.write(0, std::as_bytes(std::span(&length, 1)), "the header's length");
      file.write(sizeof(length), std::as_bytes(std::span(text)), "the header");
    } catch (...) {
      remove();
      throw;
    }
  }

  // Bytes of the current tensor that are still to come; steps over finished and empty tensors.
  std::uint64_t wanted() {
    while (current < entries.size() && entries[current].begin + filled == entries[current].end) {
      ++current;
      filled = 0;
    }
    return current == entries.size() ? 0 : entries[current].end - entries[current].begin - filled;
  }

  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(file.path(), ignored);
  }

  VerifiedFile file;
  std::vector<TensorEntry> entries;  // in declared order
  std::uint64_t data_offset = 0;
  std::size_t current = 0;
  std::uint64_t filled = 0;  // bytes of the current tensor
  bool finished = false;
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorToWrite> tensors) {
  check_names(tensors);
  file_ = std::make_unique<File>(path, tensors);
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!file_->finished) file_->remove();
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t wanted = file_->wanted();
    ensure(wanted > 0);
    const auto piece = bytes.first(std::min<std::uint64_t>(wanted, bytes.size()));
    const TensorEntry& entry = file_->entries[file_->current];
    file_->file.write(file_->data_offset + entry.begin + file_->filled, piece,
                      "tensor " + quote_name(entry.name));
    file_->filled += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void SafetensorsWriter::finish() {
  ensure(file_->wanted() == 0);
  file_->file.finish();
  file_->finished = true;
}

}  // namespace strata
