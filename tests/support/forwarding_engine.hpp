#pragma once
// An IoEngine that passes everything on to a real one: the base of those that change one thing.

#include <memory>
#include <string>
#include <utility>

#include "strata/io/io_engine.hpp"

namespace strata::testing {

class ForwardingEngine : public IoEngine {
 public:
  explicit ForwardingEngine(std::unique_ptr<IoEngine> real) : real_(std::move(real)) {}

  std::string_view name() const override { return real_->name(); }
  FileId open(const std::string& path, OpenMode mode, Caching caching) override {
    return real_->open(path, mode, caching);
  }
  FileInfo info(FileId file) const override { return real_->info(file); }
  void preallocate(FileId file, std::uint64_t bytes) override { real_->preallocate(file, bytes); }
  void sync(FileId file) override { real_->sync(file); }
  void close(FileId file) override { real_->close(file); }
  void register_memory(std::span<std::byte> memory) override { real_->register_memory(memory); }
  void unregister_memory(std::span<std::byte> memory) override { real_->unregister_memory(memory); }
  void submit(std::span<const IoRequest> requests) override { real_->submit(requests); }
  std::size_t cancel(const IoCompletion& completion) override { return real_->cancel(completion); }
  void drain() override { real_->drain(); }
  FileSystem& file_system() override { return real_->file_system(); }
  std::string describe() const override { return real_->describe(); }

 protected:
  IoEngine& real() { return *real_; }

 private:
  const std::unique_ptr<IoEngine> real_;
};

}  // namespace strata::testing
