#pragma once
// The `threads` engine: a pool of threads in pread and pwrite. For machines whose kernel refuses
// io_uring, as containers often do.

#include <string>
#include <thread>
#include <vector>

#include "io/common/request_board.hpp"

namespace strata {

class ThreadsEngine : public IoEngine {
 public:
  // `reason`: why this engine was chosen, for describe().
  ThreadsEngine(const IoOptions& options, std::string reason);
  ~ThreadsEngine() override;

  std::string_view name() const override { return "threads"; }
  FileId open(const std::string& path, OpenMode mode, Caching caching) override;
  FileInfo info(FileId file) const override { return board_.file(file)->info(); }
  void preallocate(FileId file, std::uint64_t bytes) override {
    board_.file(file)->preallocate(bytes);
  }
  void sync(FileId file) override { board_.file(file)->sync(); }
  void close(FileId file) override { board_.remove_file(file); }
  void register_memory(std::span<std::byte>) override {}  // pread and pwrite have nothing to pin
  void submit(std::span<const IoRequest> requests) override { board_.submit(requests); }
  void drain() override { board_.drain(); }
  std::string describe() const override;

 private:
  void work();

  const IoOptions options_;
  const std::string reason_;
  RequestBoard board_;
  std::vector<std::jthread> threads_;
};

}  // namespace strata
