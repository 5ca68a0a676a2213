#include "io/store/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/store/checksum.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::string_view magic = "STRATAMF";
constexpr std::uint32_t format_version = 1;
constexpr std::size_t head_bytes = 8 + 4 + 4 + 8 + 8 + 8 + 8;
constexpr std::size_t tile_bytes = 1 + 8;
constexpr std::size_t seal_bytes = 8;

class Writer {
 public:
  explicit Writer(std::size_t bytes) { bytes_.reserve(bytes); }
  void text(std::string_view text) {
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  void number(std::uint64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what is known to be there.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::string text(std::size_t num_bytes) {
    std::string text(num_bytes, '\0');
    std::ranges::transform(next(num_bytes), text.begin(),
                           [](std::byte b) { return static_cast<char>(b); });
    return text;
  }
  std::uint64_t number(std::size_t num_bytes) {
    std::uint64_t value = 0;
    int shift = 0;
    for (std::byte b : next(num_bytes)) {
      value |= std::uint64_t{static_cast<std::uint8_t>(b)} << shift;
      shift += 8;
    }
    return value;
  }

 private:
  std::span<const std::byte> next(std::size_t num_bytes) {
    ensure(num_bytes <= bytes_.size());
    const auto taken = bytes_.first(num_bytes);
    bytes_ = bytes_.subspan(num_bytes);
    return taken;
  }

  std::span<const std::byte> bytes_;
};

struct Head {
  bool has_version = false;
  std::uint64_t version = 0, description_checksum = 0, note_bytes = 0, num_tiles = 0;
};

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path), reader_(bytes) {}

  Manifest decode() {
    check_frame();
    const Head head = read_head();
    Manifest manifest;
    if (head.has_version) manifest.version = head.version;
    manifest.description_checksum = head.description_checksum;
    manifest.note = reader_.text(head.note_bytes);
    manifest.tiles.reserve(head.num_tiles);
    for (std::uint64_t i = 0; i < head.num_tiles; ++i)
      manifest.tiles.push_back(read_tile(i, head.has_version));
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}: {}", path_, what));
  }

  void check_frame() {
    if (bytes_.size() < head_bytes + seal_bytes)
      fail(fmt::format("{} bytes are too few for a manifest", bytes_.size()));
    if (reader_.text(magic.size()) != magic) fail("it is no manifest of a store");
    if (const auto version = reader_.number(4); version != format_version)
      fail(fmt::format("its format is version {}; this program knows version {}", version,
                       format_version));
    Reader seal(bytes_.last(seal_bytes));
    if (seal.number(seal_bytes) != checksum(bytes_.first(bytes_.size() - seal_bytes)))
      fail("its checksum does not match its contents");
  }

  Head read_head() {
    Head head;
    const std::uint64_t flags = reader_.number(4);
    if (flags > 1) fail(fmt::format("unknown flags {:#x}", flags));
    head.has_version = flags == 1;
    head.version = reader_.number(8);
    if (!head.has_version && head.version != 0) fail("it has a version and says that it has none");
    head.description_checksum = reader_.number(8);
    head.note_bytes = reader_.number(8);
    head.num_tiles = reader_.number(8);
    check_counts(head);
    return head;
  }

  void check_counts(const Head& head) const {
    const std::uint64_t left = bytes_.size() - head_bytes - seal_bytes;
    if (head.note_bytes > Manifest::note_bytes_max || head.note_bytes > left)
      fail(fmt::format("its note is said to have {} bytes", head.note_bytes));
    const std::uint64_t rest = left - head.note_bytes;
    if (rest % tile_bytes != 0 || head.num_tiles != rest / tile_bytes)
      fail(fmt::format("it is said to have {} tiles, which do not fill its {} bytes",
                       head.num_tiles, bytes_.size()));
  }

  TileRecord read_tile(std::uint64_t index, bool has_version) {
    TileRecord record;
    record.place = static_cast<std::uint8_t>(reader_.number(1));
    record.checksum = reader_.number(8);
    const bool known = record.place <= 1 && has_version;
    if (!known && (record.written() || record.checksum != 0))
      fail(fmt::format("tile {} is said to be in place {}", index, record.place));
    return record;
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  Reader reader_;
};

}  // namespace

std::vector<std::byte> encode(const Manifest& manifest) {
  Writer writer(head_bytes + manifest.note.size() + tile_bytes * manifest.tiles.size() +
                seal_bytes);
  writer.text(magic);
  writer.number(format_version, 4);
  writer.number(manifest.version ? 1 : 0, 4);
  writer.number(manifest.version.value_or(0), 8);
  writer.number(manifest.description_checksum, 8);
  writer.number(manifest.note.size(), 8);
  writer.number(manifest.tiles.size(), 8);
  writer.text(manifest.note);
  for (const TileRecord& record : manifest.tiles) {
    writer.number(record.place, 1);
    writer.number(record.checksum, 8);
  }
  writer.number(0, seal_bytes);
  std::vector<std::byte> bytes = writer.take();
  seal_manifest(bytes);
  return bytes;
}

Manifest decode_manifest(std::span<const std::byte> bytes, const std::string& path) {
  return Decoder(bytes, path).decode();
}

std::uint64_t manifest_bytes_max(std::size_t num_tiles) {
  return head_bytes + Manifest::note_bytes_max + tile_bytes * num_tiles + seal_bytes;
}

void seal_manifest(std::vector<std::byte>& bytes) {
  if (bytes.size() < seal_bytes) return;
  const std::size_t sealed = bytes.size() - seal_bytes;
  Writer writer(seal_bytes);
  writer.number(checksum(std::span(bytes).first(sealed)), seal_bytes);
  std::ranges::copy(writer.take(), bytes.begin() + static_cast<std::ptrdiff_t>(sealed));
}

}  // namespace strata
