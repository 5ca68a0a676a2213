#pragma once
// The VectorFiles of a checkpoint's folder are the files of its vectors, open in an engine until
// destroyed. Thread contract: changed by one thread; read by any meanwhile not.

#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"

namespace strata {

class VectorFiles {
 public:
  explicit VectorFiles(IoEngine& engine) : engine_(engine) {}
  ~VectorFiles();
  VectorFiles(const VectorFiles&) = delete;
  VectorFiles& operator=(const VectorFiles&) = delete;

  // Of the next vector. Throws SystemError, also where transfers need more than
  // checkpoint_alignment.
  FileId open(const std::string& path, OpenMode mode, Caching caching);
  FileId file(int vector) const { return files_[static_cast<std::size_t>(vector)]; }
  void close();

 private:
  IoEngine& engine_;
  std::vector<FileId> files_;
};

}  // namespace strata
