#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "display.hpp"
#include "safetensors_dtype.hpp"
#include "safetensors_header.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

constexpr std::uint64_t length_bytes = 8;

std::uint64_t read_header_bytes(const PlainFile& file) {
  const std::string source = file.path().string();
  const std::uint64_t size = file.size();
  if (size < length_bytes) {
    throw FormatError(fmt::format("{}: {} bytes are too few for a safetensors file", source, size));
  }
  std::uint64_t header_bytes = 0;
  file.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > safetensors_header_bytes_max) {
    throw FormatError(fmt::format("{}: claims a header of {} bytes; the format allows {}", source,
                                  header_bytes, safetensors_header_bytes_max));
  }
  if (header_bytes > size - length_bytes) {
    throw FormatError(fmt::format("{}: claims a header of {} bytes, but the file has only {}",
                                  source, header_bytes, size));
  }
  return header_bytes;
}

std::string read_header_text(const PlainFile& file) {
  std::string text(read_header_bytes(file), '\0');
  file.read(length_bytes, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

std::int64_t TensorEntry::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

struct SafetensorsReader::File {
  explicit File(const std::filesystem::path& path) : file(PlainFile::open(path)) {
    const std::string text = read_header_text(file);
    data_offset = length_bytes + text.size();
    header = parse_safetensors_header(text, file.size() - data_offset, path.string());
    for (const TensorEntry& tensor : header.tensors) by_name.emplace(tensor.name, &tensor);
  }

  PlainFile file;
  std::uint64_t data_offset = 0;
  SafetensorsHeader header;
  std::map<std::string_view, const TensorEntry*> by_name;
};

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : file_(std::make_unique<File>(path)) {}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;

const std::filesystem::path& SafetensorsReader::path() const { return file_->file.path(); }

const std::vector<TensorEntry>& SafetensorsReader::tensors() const { return file_->header.tensors; }

const std::map<std::string, std::string>& SafetensorsReader::metadata() const {
  return file_->header.metadata;
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = file_->by_name.find(name);
  return found == file_->by_name.end() ? nullptr : found->second;
}

void SafetensorsReader::read(const TensorEntry& tensor, std::int64_t first, std::int64_t count,
                             std::span<std::byte> target) const {
  if (!tensor.dtype) {
    throw FormatError(fmt::format("{}: tensor {} is {}, which Strata does not read",
                                  path().string(), quote_name(tensor.name), tensor.dtype_text));
  }
  const std::int64_t width = dtype_bytes(*tensor.dtype);
  ensure(first >= 0 && count >= 0 && first <= tensor.count() - count);
  ensure(target.size() == static_cast<std::size_t>(count * width));
  file_->file.read(file_->data_offset + tensor.begin + static_cast<std::uint64_t>(first * width),
                   target);
}

}  // namespace strata
