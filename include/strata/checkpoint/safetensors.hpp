#pragma once
// safetensors files, read as hostile input and written in the canonical form: byte for byte what
// the reference writer makes. Tensors of a dtype that Strata can hold may be read; as weights
// HfWeights accepts F32, F16 and BF16 alone. Thread contract: a reader may be used by one thread at
// a time.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/core/tensor_view.hpp"

namespace strata {

struct TensorEntry {
  std::string name;
  std::string dtype_text;            // as in the file: "BF16"
  std::optional<DType> dtype;        // when it is one that Strata can hold
  std::vector<std::int64_t> shape;   // rank up to 64
  std::uint64_t begin = 0, end = 0;  // bytes from the start of the data
  std::int64_t count() const;
};

class SafetensorsReader {
 public:
  // Checks the whole header (docs/design/checkpoints.md). Throws FormatError naming file and rule,
  // or SystemError.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;

  const std::filesystem::path& path() const;
  const std::vector<TensorEntry>& tensors() const;  // in file order
  const TensorEntry* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const;
  // Elements [first, first + count) of a tensor, in the file's dtype. Throws FormatError when it is
  // none that Strata holds.
  void read(const TensorEntry& tensor, std::int64_t first, std::int64_t count,
            std::span<std::byte> target) const;

 private:
  struct File;
  std::unique_ptr<File> file_;
};

struct TensorToWrite {
  std::string name;
  DType dtype = DType::bf16;
  std::vector<std::int64_t> shape;
};

// Streams one file: declare all tensors, then append each one's bytes in declared order, then
// finish(). In the file they lie in canonical order: wide types first, then by name. The path must
// not exist. __metadata__ is {"format":"pt"}.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorToWrite> tensors);
  ~SafetensorsWriter();  // an unfinished file is removed
  void append(std::span<const std::byte> bytes);
  // Checks that every byte came, flushes, and reads all back from the drive. Throws SystemError
  // (disk full names the bytes free), or Error naming file, tensor and offset of what comes back
  // otherwise than it was appended.
  void finish();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace strata
