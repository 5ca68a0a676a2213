#pragma once
// What the checkpoint tests share: a folder that cleans up, files made byte by byte, and messages
// of expected errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"

namespace strata {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = ::testing::TempDir() + "strata-checkpoint-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As a drive does that keeps another byte than it was given.
inline void spoil(const std::filesystem::path& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(offset);
  const int byte = file.seekg(at).get();
  file.seekp(at).put(static_cast<char>(byte ^ 1));
}

inline std::string length_prefix(std::uint64_t length) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

// A safetensors file with any header, right or wrong.
inline void write_raw_safetensors(const std::filesystem::path& path, const std::string& header,
                                  std::size_t data_bytes) {
  write_bytes(path, length_prefix(header.size()) + header + std::string(data_bytes, '\x3f'));
}

struct NamedValues {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

inline void write_f32_safetensors(const std::filesystem::path& path,
                                  const std::vector<NamedValues>& tensors) {
  std::vector<TensorToWrite> declared;
  for (const auto& tensor : tensors) declared.push_back({tensor.name, DType::f32, tensor.shape});
  SafetensorsWriter writer(path, declared);
  for (const auto& tensor : tensors) writer.append(std::as_bytes(std::span(tensor.values)));
  writer.finish();
}

// The message of the Expected error that `action` throws; fails the test when it throws none.
template <typename Expected, typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace strata
