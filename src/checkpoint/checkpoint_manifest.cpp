#include "checkpoint_manifest.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "checkpoint_names.hpp"
#include "io/store/json_seal.hpp"
#include "io/store/store_json_reader.hpp"
#include "run_note_json.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format_name = "strata checkpoint";
constexpr std::uint64_t format_version = 1;
constexpr std::uint64_t count_max = std::uint64_t{1} << 48;
constexpr std::array state_roles = {Role::weight, Role::master, Role::moment1, Role::moment2};
constexpr std::array state_dtypes = {DType::f64, DType::f32, DType::bf16, DType::f16,
                                     DType::i32, DType::u16, DType::u8,   DType::q8};

std::string head(const CheckpointManifest& manifest) {
  Json json = {{"format", format_name},
               {"format_version", format_version},
               {"strata_version", manifest.strata_version}};
  json.update(run_note_json(manifest.note));
  return json.dump(1);
}

std::string vector_entry(std::size_t index, const StateVector& vector) {
  const Json json = {{"role", role_name(vector.role)},
                     {"block", vector.block},
                     {"dtype", dtype_name(vector.dtype)},
                     {"count", vector.count},
                     {"file", vector_file_name(index, vector)}};
  return json.dump();
}

// The entry of each vector, its pieces on lines of their own.
class VectorEntries {
 public:
  explicit VectorEntries(const CheckpointManifest& manifest) : manifest_(manifest) {}

  std::string text() {
    for (std::size_t i = 0; i < manifest_.vectors.size(); ++i) add(i);
    return std::move(text_);
  }

 private:
  void add(std::size_t index) {
    text_ += index == 0 ? "\n  " : ",\n  ";
    text_ += vector_entry(index, manifest_.vectors[index]);
    text_.pop_back();  // the end of the object
    text_ += ",\"pieces\":[";
    for (bool first = true; next_ < manifest_.pieces.size() &&
                            manifest_.pieces[next_].vector == static_cast<int>(index);
         first = false)
      add_piece(manifest_.pieces[next_++], first ? "\n   " : ",\n   ");
    text_ += "]}";
  }
  void add_piece(const StatePiece& piece, std::string_view separator) {
    text_ += fmt::format("{}{{\"count\":{},\"xxh3\":\"{:016x}\"}}", separator, piece.count,
                         piece.checksum);
  }

  const CheckpointManifest& manifest_;
  std::size_t next_ = 0;
  std::string text_;
};

std::string body(const CheckpointManifest& manifest) {
  std::string text = head(manifest);
  text.resize(text.size() - 2);  // the end of the object
  return text + ",\n \"vectors\": [" + VectorEntries(manifest).text() + "\n ]";
}

std::string padded(std::string body) {
  const std::size_t length = align_up(body.size() + json_seal_bytes, checkpoint_alignment);
  body.resize(length - json_seal_bytes, ' ');
  return body;
}

Role role_of(const StoreJsonReader& json) {
  const std::string name = json.text("role");
  for (const Role role : state_roles)
    if (role_name(role) == name) return role;
  json.fail("its role is none of a run's state");
}

DType dtype_of(const StoreJsonReader& json) {
  const std::string name = json.text("dtype");
  for (const DType dtype : state_dtypes)
    if (dtype_name(dtype) == name) return dtype;
  json.fail("its dtype is unknown");
}

StateVector vector_of(const StoreJsonReader& json) {
  return {.role = role_of(json),
          .block = json.text("block"),
          .dtype = dtype_of(json),
          .count = static_cast<std::int64_t>(json.number("count", 1, count_max))};
}

std::uint64_t checksum_of(const StoreJsonReader& json) {
  const std::string digits = json.text("xxh3");
  std::uint64_t value = 0;
  for (const char digit : digits) {
    const bool is_decimal = digit >= '0' && digit <= '9', is_letter = digit >= 'a' && digit <= 'f';
    if (!is_decimal && !is_letter) json.fail("'xxh3' is not hex digits");
    value = value << 4 | static_cast<std::uint64_t>(is_decimal ? digit - '0' : digit - 'a' + 10);
  }
  if (digits.size() != 16) json.fail("'xxh3' is not 16 hex digits");
  return value;
}

// The next piece of a vector, which begins where the one before it ended.
StatePiece piece_of(const StoreJsonReader& json, const StateVector& vector, std::int64_t first) {
  const std::int64_t left = vector.count - first;
  if (left == 0) json.fail(fmt::format("it lies behind the {} elements", vector.count));
  StatePiece piece;
  piece.first = first;
  piece.count =
      static_cast<std::int64_t>(json.number("count", 1, static_cast<std::uint64_t>(left)));
  if (piece.count != left && piece.count % norm_chunk_elements != 0)
    json.fail(fmt::format("it ends within a chunk of {} elements", norm_chunk_elements));
  piece.checksum = checksum_of(json);
  return piece;
}

void read_pieces(const StoreJsonReader& json, CheckpointManifest& manifest) {
  const StateVector& vector = manifest.vectors.back();
  std::int64_t first = 0;
  for (const StoreJsonReader& row :
       json.rows("pieces", state_pieces_max - manifest.pieces.size())) {
    StatePiece piece = piece_of(row, vector, first);
    piece.vector = static_cast<int>(manifest.vectors.size()) - 1;
    first += piece.count;
    manifest.pieces.push_back(piece);
  }
  if (first != vector.count)
    json.fail(fmt::format("its pieces end at element {} of {}", first, vector.count));
}

void read_vectors(const StoreJsonReader& json, CheckpointManifest& manifest) {
  std::unordered_set<std::string> names;
  for (const StoreJsonReader& row : json.rows("vectors", state_vectors_max)) {
    manifest.vectors.push_back(vector_of(row));
    if (!names.insert(state_vector_name(manifest.vectors.back())).second)
      row.fail(quoted_vector(manifest.vectors.back()) + " is there twice");
    read_pieces(row, manifest);
  }
}

void check_version(const StoreJsonReader& json) {
  if (json.text("format") != format_name) json.fail("it does not describe a checkpoint of Strata");
  const auto version = json.number("format_version", 0, ~std::uint64_t{0});
  if (version == format_version) return;
  json.fail(
      fmt::format("the checkpoint has format version {}; this program reads format version "
                  "{} only: use the version of Strata that wrote it (strata_version in this "
                  "file)",
                  version, format_version));
}

}  // namespace

std::string checkpoint_json(const CheckpointManifest& manifest) {
  try {
    return with_json_seal(padded(body(manifest)));
  } catch (const Json::type_error&) {
    throw ConfigError("the names of blocks and the config in a checkpoint must be UTF-8");
  }
}

CheckpointManifest parse_checkpoint_json(std::string_view text, const std::string& path) {
  const StoreJsonReader json = StoreJsonReader::parse(text, path);
  check_version(json);
  if (!has_json_seal(text)) json.fail("it is damaged: its checksum does not match its contents");
  CheckpointManifest manifest;
  manifest.strata_version = json.text("strata_version");
  manifest.note = read_run_note(json);
  read_vectors(json, manifest);
  // Unknown and repeated keys, other spellings: nobody writes them, so nobody means well with them.
  if (checkpoint_json(manifest) != text) json.fail("it is not as Strata writes it");
  return manifest;
}

}  // namespace strata
