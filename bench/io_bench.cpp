// Compares the uring and threads engines, and fio where it is installed, on one pair of scratch
// files: sequential read, write, and both at once, all O_DIRECT, in pieces of 4 MiB from buffers on
// 2 MiB pages.
//
//   io_bench [DIRECTORY] [GIB_PER_FILE] [REPEATS]
//
// The contestants take turns within each repeat, so that a drive in a bad mood is so for all of
// them.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {
namespace {

constexpr std::uint64_t piece_bytes = 4 * MiB;
constexpr std::uint64_t buffer_bytes = 256 * MiB;
constexpr int depth = 32;

enum class Shape : std::uint8_t { read, write, mixed };
constexpr std::array shapes = {Shape::read, Shape::write, Shape::mixed};
constexpr std::array shape_names = {"read", "write", "mixed"};
constexpr std::size_t index_of(Shape shape) { return static_cast<std::size_t>(shape); }

struct Sample {
  double gb_per_second = 0;
  double cpu_seconds_per_gb = 0;
};

// Anonymous memory on 2 MiB pages, touched.
class HugeBuffer {
 public:
  explicit HugeBuffer(std::uint64_t bytes) : bytes_(bytes + 2 * MiB) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap");
    ::madvise(memory_, bytes_, MADV_HUGEPAGE);
    const auto start = align_up(reinterpret_cast<std::uintptr_t>(memory_), 2 * MiB);
    span_ = {reinterpret_cast<std::byte*>(start), bytes};
    for (std::uint64_t at = 0; at < bytes; at += 8)
      span_[at] = static_cast<std::byte>(at * 31 >> 5);
  }
  ~HugeBuffer() { ::munmap(memory_, bytes_); }
  HugeBuffer(const HugeBuffer&) = delete;
  HugeBuffer& operator=(const HugeBuffer&) = delete;
  std::span<std::byte> span() const { return span_; }

 private:
  std::uint64_t bytes_;
  void* memory_ = nullptr;
  std::span<std::byte> span_;
};

class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& parent) : path_(parent + "/strata-io-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

struct Task {
  ScratchDirectory& directory;
  std::uint64_t file_bytes;
  std::span<std::byte> memory;
};

class Countdown : public IoCompletion {
 public:
  explicit Countdown(std::ptrdiff_t count) : left_(count) {}
  void complete(const IoResult& result) noexcept override {
    if (!result.ok()) std::fprintf(stderr, "%s\n", result.message.c_str());
    left_.count_down();
  }
  void wait() { left_.wait(); }

 private:
  std::latch left_;
};

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto total = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return total(usage.ru_utime) + total(usage.ru_stime);
}

// Requests of one piece each over a whole file, from a ring of buffers.
void append(std::vector<IoRequest>& requests, IoOp op, FileId file, std::uint64_t bytes,
            std::span<std::byte> memory) {
  for (std::uint64_t at = 0; at < bytes; at += piece_bytes) {
    IoRequest request = {.op = op, .file = file, .offset = at, .bytes = piece_bytes};
    request.data = memory.data() + at % memory.size();
    requests.push_back(request);
  }
}

std::vector<IoRequest> requests_of(Shape shape, const std::array<FileId, 2>& files,
                                   const Task& task) {
  std::vector<IoRequest> requests;
  if (shape != Shape::write) append(requests, IoOp::read, files[0], task.file_bytes, task.memory);
  if (shape == Shape::read) return requests;
  if (shape == Shape::write) {
    append(requests, IoOp::write, files[1], task.file_bytes, task.memory);
    return requests;
  }
  std::vector<IoRequest> writes, both;
  append(writes, IoOp::write, files[1], task.file_bytes, task.memory);
  for (std::size_t index = 0; index < writes.size(); ++index) {
    both.push_back(requests[index]);
    both.push_back(writes[index]);
  }
  return both;
}

Sample run_engine(IoEngine& engine, Shape shape, const Task& task) {
  const std::array<FileId, 2> files = {
      engine.open(task.directory.file("a"), OpenMode::read_write_create, Caching::direct),
      engine.open(task.directory.file("b"), OpenMode::read_write_create, Caching::direct)};
  auto requests = requests_of(shape, files, task);
  Countdown countdown(static_cast<std::ptrdiff_t>(requests.size()));
  for (IoRequest& request : requests) request.completion = &countdown;
  const double cpu = cpu_seconds();
  const std::int64_t start = now_ns();
  engine.submit(requests);
  countdown.wait();
  const double elapsed = seconds(now_ns() - start);
  const double gb = static_cast<double>(requests.size() * piece_bytes) * 1e-9;
  for (const FileId file : files) engine.close(file);
  return {gb / elapsed, (cpu_seconds() - cpu) / gb};
}

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 4096> part;
  while (pipe != nullptr &&
         std::fgets(part.data(), static_cast<int>(part.size()), pipe.get()) != nullptr) {
    text += part.data();
  }
  return text;
}

std::string fio_command(Shape shape, const Task& task) {
  constexpr std::array patterns = {"read", "write", "rw"};
  // THP for fio's buffers too, or it would measure 4 KiB pages.
  return fmt::format(
      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --output-format=terse --terse-version=3 "
      "--ioengine=io_uring "
      "--fixedbufs --registerfiles --direct=1 --bs={} --size={} --iodepth={} --name={} --rw={} "
      "--filename={} "
      "2>/dev/null",
      piece_bytes, task.file_bytes, depth, shape_names[index_of(shape)], patterns[index_of(shape)],
      task.directory.file(shape == Shape::write ? "b" : "a"));
}

// Terse version 3: field 6 is KiB read, 9 the milliseconds it took; 47 and 50 the same of writes
// (counted from 1); 88 and 89 the user and system CPU in percent of the time.
Sample parse_fio(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream words(line);
  for (std::string word; std::getline(words, word, ';');) fields.push_back(word);
  if (fields.size() < 90) return {};
  const auto field = [&](std::size_t number) { return std::stod(fields[number - 1]); };
  const double elapsed = std::max(field(9), field(50)) * 1e-3;
  const double gb = (field(6) + field(47)) * 1024e-9;
  return {gb / elapsed, elapsed * (field(88) + field(89)) / 100 / gb};
}

using Contestant = std::function<Sample(Shape, const Task&)>;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void print(const std::string& name, const std::vector<Sample>& samples, double reference) {
  std::vector<double> rates, cpu;
  for (const Sample& sample : samples) rates.push_back(sample.gb_per_second);
  for (const Sample& sample : samples) cpu.push_back(sample.cpu_seconds_per_gb);
  fmt::print("  {:<22} {:5.2f} GB/s  ({:.2f} to {:.2f})  {:.4f} CPU s/GB", name, median(rates),
             std::ranges::min(rates), std::ranges::max(rates), median(cpu));
  if (reference > 0) fmt::print("  {:.2f} x fio", median(rates) / reference);
  fmt::print("\n");
}

void compare(Shape shape, const std::map<std::string, Contestant>& contestants, int repeats,
             const Task& task) {
  std::map<std::string, std::vector<Sample>> samples;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const auto& [name, contestant] : contestants)
      samples[name].push_back(contestant(shape, task));
  }
  double reference = 0;
  if (samples.contains("fio")) {
    std::vector<double> rates;
    for (const Sample& sample : samples["fio"]) rates.push_back(sample.gb_per_second);
    reference = median(rates);
  }
  fmt::print("{}\n", shape_names[index_of(shape)]);
  for (const auto& [name, list] : samples) print(name, list, reference);
  std::fflush(stdout);
}

// Blocks that were never written read as zeros without the drive, and first writes allocate.
void write_once(IoEngine& engine, const Task& task) {
  for (const char* name : {"a", "b"}) {
    const FileId file =
        engine.open(task.directory.file(name), OpenMode::read_write_create, Caching::direct);
    engine.preallocate(file, task.file_bytes);
    engine.close(file);
  }
  run_engine(engine, Shape::write, task);
  std::filesystem::rename(task.directory.file("b"), task.directory.file("c"));
  std::filesystem::rename(task.directory.file("a"), task.directory.file("b"));
  std::filesystem::rename(task.directory.file("c"), task.directory.file("a"));
  run_engine(engine, Shape::write, task);
}

bool fio_installed() { return std::system("fio --version > /dev/null 2>&1") == 0; }

void run_bench(const std::string& parent, std::uint64_t file_bytes, int repeats) {
  ScratchDirectory directory(parent);
  const HugeBuffer buffer(buffer_bytes);
  const Task task = {directory, file_bytes, buffer.span()};
  const IoOptions options = {.queue_depth = depth, .chunk_bytes = piece_bytes};
  std::map<std::string, Contestant> contestants;
  std::vector<std::shared_ptr<IoEngine>> engines;
  const auto enter = [&](const std::string& name, std::shared_ptr<IoEngine> engine) {
    fmt::print("{}: {}\n", name, engine->describe());
    contestants[name] = [engine](Shape shape, const Task& one) {
      return run_engine(*engine, shape, one);
    };
    engines.push_back(std::move(engine));
  };
  const std::shared_ptr<IoEngine> registered = make_uring_engine(options);
  registered->register_memory(buffer.span());
  enter("uring", registered);
  enter("uring, not registered", make_uring_engine(options));
  enter("threads", make_threads_engine(options));
  if (fio_installed()) {
    contestants["fio"] = [](Shape shape, const Task& one) {
      return parse_fio(output_of(fio_command(shape, one)));
    };
  }
  write_once(*registered, task);
  for (const Shape shape : shapes) compare(shape, contestants, repeats, task);
}

}  // namespace
}  // namespace strata

int main(int argc, char** argv) {
  const std::string parent = argc > 1 ? argv[1] : ".";
  const double gib = argc > 2 ? std::stod(argv[2]) : 2;
  const int repeats = argc > 3 ? std::stoi(argv[3]) : 3;
  const auto bytes =
      strata::align_up(static_cast<std::uint64_t>(gib * 1024) * strata::MiB, 4 * strata::MiB);
  strata::run_bench(parent, bytes, repeats);
}
