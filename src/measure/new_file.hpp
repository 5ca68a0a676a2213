#pragma once
// A NewFile is a file that was not there, open for writing, with its space reserved: what a
// checkpoint writes into. It goes away with the object.
//
// Thread contract: one thread.

#include <cstdint>
#include <string>

#include "strata/io/io_engine.hpp"

namespace strata {

class NewFile {
 public:
  // The engine outlives it. Throws Error where there is such a file: its blocks would be old ones.
  NewFile(IoEngine& engine, std::string path, std::uint64_t bytes);
  ~NewFile();  // nothing is in flight
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  FileId id() const { return file_; }

 private:
  void put_away() noexcept;

  IoEngine& engine_;
  const std::string path_;
  FileId file_ = {};
};

}  // namespace strata
