#pragma once
// Checks that end their job, or want it made with options of their own: each is run by all ranks of
// a fresh job of two ranks at least, and takes the rank's links, to leave when it likes.
//
//   LateReports reports;
//   RankLinks rank = ... made with options_of(check, reports);
//   check.run(std::move(rank), reports);
//
// Ranks of one process share its LateReports.

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <ostream>

#include "contract/comm/communicator_checks.hpp"
#include "support/polling.hpp"

namespace strata::testing {

// What CommOptions::on_late was told in this process.
class LateReports {
 public:
  void add(const std::string& report) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(report);
  }
  std::vector<std::string> about(const std::string& part) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    std::ranges::copy_if(reports_, std::back_inserter(found), [&](const std::string& report) {
      return report.find(part) != std::string::npos;
    });
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> reports_;
};

struct JobCheck {
  const char* name;
  void (*run)(RankLinks rank, LateReports& reports);
  double timeout_s = 60, late_s = 60;
};

inline void PrintTo(const JobCheck& check, std::ostream* out) { *out << check.name; }

inline CommOptions options_of(const JobCheck& check, LateReports& reports) {
  return {.timeout_s = check.timeout_s, .late_s = check.late_s, .on_late = [&](const auto& report) {
            reports.add(report);
          }};
}

inline void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

inline bool is_last(const Communicator& comm) { return comm.rank() == comm.world() - 1; }
inline std::string last_rank(const Communicator& comm) {
  return "rank " + std::to_string(comm.world() - 1);
}

inline std::string error_of_all_reduce(Communicator& comm, std::size_t count = 3) {
  LazyStream stream;
  std::vector<float> values(count);
  return error_of([&] { comm.all_reduce(view_of(values), stream); });
}
inline std::string error_of_barrier(Communicator& comm) {
  LazyStream stream;
  return error_of([&] { comm.barrier(stream); });
}

inline bool is_well(const std::function<void()>& work) { return error_of(work) == "no error"; }

// Waits on both lines at once, on two threads.
struct BothErrors {
  std::string data, control;
};
inline BothErrors errors_of_both_lines(RankLinks& rank) {
  BothErrors errors;
  std::jthread control([&] { errors.control = error_of_barrier(*rank.control); });
  errors.data = error_of_all_reduce(*rank.data);
  control.join();
  return errors;
}

inline void ends_the_waits_for_a_rank_that_leaves(RankLinks rank, LateReports&) {
  LazyStream stream;
  rank.data->barrier(stream);
  if (is_last(*rank.data)) return;
  const BothErrors errors = errors_of_both_lines(rank);
  EXPECT_THAT(errors.data, ::testing::HasSubstr("all_reduce"));
  EXPECT_THAT(errors.data, ::testing::HasSubstr(last_rank(*rank.data)));
  EXPECT_THAT(errors.control, ::testing::HasSubstr("barrier"));
  EXPECT_THAT(errors.control, ::testing::HasSubstr(last_rank(*rank.data)));
  EXPECT_EQ(rank.data->failure(), rank.control->failure());
}

inline void ends_all_calls_after_a_failure(RankLinks rank, LateReports&) {
  if (rank.data->rank() == 0) return;
  EXPECT_NE(error_of_barrier(*rank.data), "no error");
  EXPECT_THAT(error_of_all_reduce(*rank.data), ::testing::HasSubstr("all_reduce on rank"));
  EXPECT_THAT(error_of_all_reduce(*rank.control), ::testing::HasSubstr("all_reduce on rank"));
  EXPECT_NE(rank.data->failure(), "");
}

inline void names_the_rank_that_calls_something_else(RankLinks rank, LateReports&) {
  const std::string error = error_of_all_reduce(*rank.data, is_last(*rank.data) ? 4 : 3);
  const std::string odd = last_rank(*rank.data) + " called all_reduce of 4 f32";
  EXPECT_THAT(error, ::testing::HasSubstr(odd));
  EXPECT_THAT(error, ::testing::HasSubstr("rank 0 called all_reduce of 3 f32"));
  EXPECT_THAT(rank.control->failure(), ::testing::HasSubstr(odd));
  EXPECT_NE(error_of_barrier(*rank.control), "no error");
}

inline void names_the_rank_that_calls_another_kind(RankLinks rank, LateReports&) {
  LazyStream stream;
  std::vector<double> values(3);
  const bool is_odd = is_last(*rank.control);
  const std::string error = error_of([&] {
    if (is_odd) return rank.control->barrier(stream);
    rank.control->broadcast(view_of(values), 0, stream);
  });
  EXPECT_THAT(error, ::testing::HasSubstr(last_rank(*rank.data) + " called barrier"));
  EXPECT_THAT(error, ::testing::HasSubstr("rank 0 called broadcast of 3 f64 from rank 0"));
}

inline void names_the_rank_that_sends_elsewhere(RankLinks rank, LateReports&) {
  LazyStream stream;
  std::vector<bfloat16> values(5);
  const int to = is_last(*rank.data) ? 0 : 1;
  const std::string error = error_of([&] { rank.data->send(view_of(values), 0, to, stream); });
  EXPECT_THAT(error, ::testing::HasSubstr(last_rank(*rank.data) +
                                          " called send of 5 bf16 from rank 0 to rank 0"));
  EXPECT_THAT(error, ::testing::HasSubstr("rank 0 called send of 5 bf16 from rank 0 to rank 1"));
}

inline void names_the_rank_that_does_not_come(RankLinks rank, LateReports&) {
  if (is_last(*rank.data)) {
    EXPECT_TRUE(comes_true([&] { return !rank.data->failure().empty(); }));
    EXPECT_NE(error_of_barrier(*rank.control), "no error");
    return;
  }
  LazyStream stream;
  std::vector<float> values(3);
  const std::string error = error_of([&] { rank.data->broadcast(view_of(values), 0, stream); });
  EXPECT_THAT(error,
              ::testing::HasSubstr("broadcast on rank " + std::to_string(rank.data->rank())));
  EXPECT_THAT(error, ::testing::HasSubstr(last_rank(*rank.data)));
  EXPECT_THAT(error_of_barrier(*rank.control), ::testing::HasSubstr(rank.data->failure()));
}

// The last rank comes to neither line; it aborts from a thread that calls no collectives.
inline void ends_the_waits_of_both_lines_when_a_rank_aborts(RankLinks rank, LateReports&) {
  const std::string reason =
      last_rank(*rank.data) + ": step 4: update on lane update: disk is full";
  LazyStream stream;
  rank.control->barrier(stream);
  if (is_last(*rank.data)) {
    sleep_ms(5);  // so that some wait already; those that do not are no less bound to end
    std::jthread([&] { rank.control->abort(reason); });
  }
  const BothErrors errors = is_last(*rank.data) ? BothErrors{error_of_all_reduce(*rank.data),
                                                             error_of_barrier(*rank.control)}
                                                : errors_of_both_lines(rank);
  EXPECT_THAT(errors.data, ::testing::HasSubstr("all_reduce on rank"));
  EXPECT_THAT(errors.data, ::testing::HasSubstr(reason));
  EXPECT_THAT(errors.control, ::testing::HasSubstr("barrier on rank"));
  EXPECT_THAT(errors.control, ::testing::HasSubstr(reason));
  rank.data->abort("a later reason");
  EXPECT_EQ(rank.data->failure(), reason);
  EXPECT_EQ(rank.control->failure(), reason);
}

// On one line a mismatch, while all but the last rank wait on the other.
inline void ends_both_lines_when_one_fails(RankLinks rank, LateReports&) {
  LazyStream stream;
  std::string data;
  std::jthread waits([&] {
    if (!is_last(*rank.data)) data = error_of_all_reduce(*rank.data);
  });
  const std::string control =
      is_last(*rank.data) ? error_of_barrier(*rank.control) : error_of_all_reduce(*rank.control, 5);
  waits.join();
  const std::string reason =
      last_rank(*rank.data) + " called barrier where rank 0 called all_reduce of 5 f32";
  EXPECT_THAT(control, ::testing::HasSubstr(reason));
  EXPECT_THAT(is_last(*rank.data) ? reason : data, ::testing::HasSubstr(reason));
  EXPECT_EQ(rank.data->failure(), reason);
}

// A collective that ends well on a rank gave what it should, whatever the others then did with
// their memory; so nobody's was free to change while another still read it.
inline void reads_no_memory_that_an_abort_gave_back(RankLinks rank, LateReports&) {
  const int world = rank.data->world();
  const std::size_t part = 20000, count = part * static_cast<std::size_t>(world);
  const std::ptrdiff_t begin = static_cast<std::ptrdiff_t>(part) * rank.data->rank();
  const std::vector<float> expected = sum_in_rank_order<float>(world, count, 40);
  const std::vector<float> start = values_of<float>(rank.data->rank(), count, 40);
  LazyStream stream;
  std::jthread aborter;
  for (int round = 0; rank.data->failure().empty(); ++round) {
    std::vector<float> full = start, sum(part), sums(count);
    if (round == 10 && is_last(*rank.data))
      aborter = std::jthread([&] { rank.control->abort("enough"); });
    const bool is_scattered =
        is_well([&] { rank.data->reduce_scatter(view_of(full), view_of(sum), stream); });
    std::ranges::fill(full, -1.0f);
    EXPECT_TRUE(!is_scattered || same_bits(sum.data(), expected.data() + begin, part));
    const bool is_gathered =
        is_well([&] { rank.data->all_gather(view_of(sum), view_of(sums), stream); });
    std::ranges::fill(sum, -1.0f);
    EXPECT_TRUE(!is_gathered || same_bits(sums, expected));
  }
  EXPECT_EQ(rank.data->failure(), "enough");
}

inline constexpr int late_ms = 20;

// The last rank comes to the data line when rank 0, whose process was told, says so on the control
// line. Waiting on that may itself be told as late: it is another collective. On a busy machine
// others may be late too.
inline void tells_once_which_rank_is_late(RankLinks rank, LateReports& reports) {
  LazyStream stream, control_stream;
  std::vector<bfloat16> shard(24), gathered(24 * static_cast<std::size_t>(rank.data->world()));
  const auto gather = [&] { rank.data->all_gather(view_of(shard), view_of(gathered), stream); };
  if (is_last(*rank.data)) {
    rank.control->barrier(control_stream);
    return gather();
  }
  std::jthread data([&] { expect_well(gather); });
  if (rank.data->rank() == 0) {
    const auto told = [&] { return reports.about("not come to all_gather of 24 bf16 for "); };
    EXPECT_TRUE(comes_true([&] { return !told().empty(); }));
    sleep_ms(3 * late_ms);
    EXPECT_THAT(told(), ::testing::ElementsAre(::testing::HasSubstr(last_rank(*rank.data))));
  }
  rank.control->barrier(control_stream);
  data.join();
  EXPECT_EQ(rank.data->failure(), "");
}

inline std::span<const JobCheck> job_checks() {
  static constexpr JobCheck checks[] = {
      {"EndsTheWaitsForARankThatLeaves", ends_the_waits_for_a_rank_that_leaves},
      {"EndsAllCallsAfterAFailure", ends_all_calls_after_a_failure},
      {"NamesTheRankThatCallsSomethingElse", names_the_rank_that_calls_something_else},
      {"NamesTheRankThatCallsAnotherKind", names_the_rank_that_calls_another_kind},
      {"NamesTheRankThatSendsElsewhere", names_the_rank_that_sends_elsewhere},
      {"NamesTheRankThatDoesNotCome", names_the_rank_that_does_not_come, 0.05},
      {"EndsTheWaitsOfBothLinesWhenARankAborts", ends_the_waits_of_both_lines_when_a_rank_aborts},
      {"EndsBothLinesWhenOneFails", ends_both_lines_when_one_fails},
      {"ReadsNoMemoryThatAnAbortGaveBack", reads_no_memory_that_an_abort_gave_back},
      {"TellsOnceWhichRankIsLate", tells_once_which_rank_is_late, 60, late_ms / 1000.0},
  };
  return checks;
}

}  // namespace strata::testing
