#pragma once
// A PosixEngine is an IoEngine over the host's files: it opens them, and keeps a DeviceQueue for
// each device that files were opened on. The first queue is made with the engine, so that what the
// kernel refuses is known at once; each other when the first file of its device is opened.
//
// Beyond FileTable::queues_max devices, further ones share the last queue.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/common/device_queue.hpp"
#include "io/common/memory_list.hpp"
#include "io/common/stall_watch.hpp"

namespace strata {

class PosixEngine : public IoEngine {
 public:
  // Which device a file is on; tests play several on one.
  using DeviceOf = std::function<std::uint64_t(const PosixFile& file)>;

  PosixEngine(std::string name, const IoOptions& options, QueueFactory make_queue,
              DeviceOf device_of = &PosixFile::device);
  ~PosixEngine() override;

  std::string_view name() const override { return name_; }
  FileId open(const std::string& path, OpenMode mode, Caching caching) override;
  FileInfo info(FileId file) const override { return open_file(file)->info(); }
  void preallocate(FileId file, std::uint64_t bytes) override {
    open_file(file)->preallocate(bytes);
  }
  void sync(FileId file) override { open_file(file)->sync(); }
  void close(FileId file) override;
  void register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;
  void submit(std::span<const IoRequest> requests) override;
  std::size_t cancel(const IoCompletion& completion) override;
  void drain() override;
  FileSystem& file_system() override { return posix_file_system(); }
  std::string describe() const override;

 private:
  std::shared_ptr<OpenFile> open_file(FileId file) const;
  std::size_t queue_of(FileId file) const;
  std::size_t queue_for(std::uint64_t device);
  void add_queue();
  std::span<const std::unique_ptr<DeviceQueue>> queues() const;
  static void submit_to(DeviceQueue& queue, std::span<const IoRequest> requests);
  void submit_part(std::size_t number, std::span<const IoRequest> requests);

  const std::string name_;
  const QueueFactory make_queue_;
  const DeviceOf device_of_;
  // Written under mutex_; the first num_queues_ are there for good, for any reader.
  std::array<std::unique_ptr<DeviceQueue>, FileTable::queues_max> queues_;
  std::atomic<std::size_t> num_queues_ = 0;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::uint64_t> devices_;  // by queue; the first queue may still have none
  MemoryList memory_;                   // registered, also with queues made later

  StallWatch watch_;  // last: it looks at the boards
};

}  // namespace strata
