// Many threads at once, and many files one after the other, on every engine.

#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "contract/io/engine_cases.hpp"
#include "support/sanitizers.hpp"

namespace strata::testing {
namespace {

class EnduranceContract : public EngineTest {};

INSTANTIATE_TEST_SUITE_P(Engines, EnduranceContract, ::testing::ValuesIn(engine_cases()),
                         [](const auto& engine) { return engine.param.name; });

// One of many users of an engine: a region of a shared file, a file of its own, and a random mix
// of what can be done with them. Counts what came out wrong.
class User {
 public:
  User(IoEngine& engine, FileId shared, std::string own_path, std::uint64_t number)
      : engine_(engine),
        shared_(shared),
        own_path_(std::move(own_path)),
        base_(number * bytes_),
        random_(number, 99) {}

  void run_rounds(int rounds) {
    for (int round = 0; round < rounds; ++round) run_round();
  }
  int num_wrong() const { return num_wrong_; }

 private:
  static constexpr std::uint64_t bytes_ = 72 * KiB;  // two pieces

  void run_round() {
    switch (random_.next_below(4)) {
      case 0:
        return write_and_read(shared_, base_);
      case 1:
        return use_own_file();
      case 2:
        return write_and_give_up();
      default:
        return write_batch();
    }
  }

  IoPriority any_priority() {
    return static_cast<IoPriority>(random_.next_below(num_io_priorities));
  }

  void expect(bool holds) { num_wrong_ += holds ? 0 : 1; }

  void move(IoOp op, FileId file, std::uint64_t offset, const Buffer& data) {
    Outcome outcome;
    const IoRequest one = request(op, file, offset, data.span(), &outcome, any_priority());
    engine_.submit({&one, 1});
    expect(outcome.wait().ok());
  }

  void write_and_read(FileId file, std::uint64_t offset) {
    const auto written = Buffer::random(bytes_, random_.next_u64());
    const Buffer got(bytes_);
    move(IoOp::write, file, offset, written);
    move(IoOp::read, file, offset, got);
    expect(got == written);
  }

  void use_own_file() {
    const FileId file = engine_.open(own_path_, OpenMode::read_write_create, Caching::direct);
    write_and_read(file, 0);
    expect(engine_.info(file).bytes == bytes_);
    engine_.close(file);
  }

  void write_and_give_up() {
    const auto data = Buffer::random(bytes_, random_.next_u64());
    Outcome outcome;
    const IoRequest one =
        request(IoOp::write, shared_, base_, data.span(), &outcome, any_priority());
    engine_.submit({&one, 1});
    const bool given_up = engine_.cancel(outcome) == 1;
    expect(outcome.wait().ok() != given_up);
  }

  void write_batch() {
    const auto data = Buffer::random(bytes_, random_.next_u64());
    std::vector<Outcome> outcomes(bytes_ / (4 * KiB));
    std::vector<IoRequest> requests;
    for (Outcome& outcome : outcomes) {
      const std::uint64_t at = requests.size() * 4 * KiB;
      requests.push_back(request(IoOp::write, shared_, base_ + at, data.span().subspan(at, 4 * KiB),
                                 &outcome, any_priority()));
    }
    engine_.submit(requests);
    for (Outcome& outcome : outcomes) expect(outcome.wait().ok() && outcome.calls() == 1);
    const Buffer got(bytes_);
    move(IoOp::read, shared_, base_, got);
    expect(got == data);
  }

  IoEngine& engine_;
  const FileId shared_;
  const std::string own_path_;
  const std::uint64_t base_;
  PhiloxStream random_;
  int num_wrong_ = 0;
};

TEST_P(EnduranceContract, Serves64ThreadsOfMixedRequests) {
  constexpr std::uint64_t num_threads = 64;
  const FileId shared = open("shared");
  engine_->preallocate(shared, num_threads * 72 * KiB);
  std::atomic<int> num_wrong = 0;
  std::vector<std::jthread> threads;
  for (std::uint64_t number = 0; number < num_threads; ++number) {
    threads.emplace_back([&, number] {
      User user(*engine_, shared, directory_.file("own" + std::to_string(number)), number);
      user.run_rounds(rounds(4, 3));
      num_wrong += user.num_wrong();
    });
  }
  threads.clear();
  EXPECT_EQ(num_wrong, 0);
}

std::ptrdiff_t num_descriptors() {
  const std::filesystem::directory_iterator open_now("/proc/self/fd");
  return std::distance(begin(open_now), end(open_now));
}

// Bytes in use; the sanitizers keep their own books.
std::ptrdiff_t heap_bytes() {
  return sanitized ? 0 : static_cast<std::ptrdiff_t>(::mallinfo2().uordblks);
}

TEST_P(EnduranceContract, GrowsNoDescriptorsAndNoHeapOver10000OpenedFiles) {
  const Buffer data(4 * KiB);
  const auto open_and_close = [&](int times) {
    for (int time = 0; time < times; ++time) {
      const FileId file = open("tiles" + std::to_string(time % 3), Caching::buffered);
      if (time % 20 == 0) transfer(*engine_, request(IoOp::write, file, 0, data.span()));
      engine_->close(file);
    }
  };
  open_and_close(2000);
  const std::ptrdiff_t descriptors = num_descriptors(), heap = heap_bytes();
  open_and_close(rounds(10'000, 1000));
  EXPECT_EQ(num_descriptors(), descriptors);
  EXPECT_LE(heap_bytes() - heap, 8 * 1024);
}

}  // namespace
}  // namespace strata::testing
