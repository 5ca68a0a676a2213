#pragma once
// What every Communicator promises, as the part of one rank. All ranks of a job, threads of one
// process or of several, run the same checks in the same order; each asserts what it can see. How
// the ranks are made, and on which threads they run, is the caller's.
//
// lasting_checks() leave a job as they found it: one job can run them all, in a row.
// job_checks() (communicator_job_checks.hpp) want a job of their own each.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <ostream>
#include <span>
#include <thread>

#include "contract/comm/rank_values.hpp"
#include "strata/comm/communicator.hpp"

namespace strata::testing {

struct LastingCheck {
  const char* name;
  void (*run)(RankLinks& rank);
};

inline void PrintTo(const LastingCheck& check, std::ostream* out) { *out << check.name; }

// One rank's part of each collective with seeded values, and what it must give.
class CheckedCollectives {
 public:
  explicit CheckedCollectives(Communicator& comm) : comm_(comm) {}

  template <typename T>
  void all_gather(std::size_t count, unsigned seed) {
    std::vector<T> shard = values_of<T>(rank(), count, seed), gathered(count * world());
    comm_.all_gather(view_of(shard), view_of(gathered), stream_);
    EXPECT_TRUE(same_bits(gathered, all_values<T>(count, seed)));
    EXPECT_TRUE(same_bits(shard, values_of<T>(rank(), count, seed)));
  }

  template <typename T>
  void all_gather_in_place(std::size_t count, unsigned seed) {
    std::vector<T> gathered(count * world());
    std::ranges::copy(values_of<T>(rank(), count, seed), gathered.begin() + begin_of(count));
    comm_.all_gather(part_of(gathered, count), view_of(gathered), stream_);
    EXPECT_TRUE(same_bits(gathered, all_values<T>(count, seed)));
  }

  template <typename T>
  void reduce_scatter(std::size_t count, unsigned seed, ValueKind kind = ValueKind::wild) {
    const std::vector<T> before = values_of<T>(rank(), count * world(), seed, kind);
    std::vector<T> full = before, shard(count);
    comm_.reduce_scatter(view_of(full), view_of(shard), stream_);
    EXPECT_TRUE(same_bits(shard.data(),
                          sums<T>(count * world(), seed, kind).data() + begin_of(count), count));
    EXPECT_TRUE(same_bits(full, before));
  }

  template <typename T>
  void reduce_scatter_in_place(std::size_t count, unsigned seed) {
    std::vector<T> full = values_of<T>(rank(), count * world(), seed), expected = full;
    const std::vector<T> sum = sums<T>(count * world(), seed);
    std::copy_n(sum.begin() + begin_of(count), count, expected.begin() + begin_of(count));
    comm_.reduce_scatter(view_of(full), part_of(full, count), stream_);
    EXPECT_TRUE(same_bits(full, expected));
  }

  template <typename T>
  void all_reduce(std::size_t count, unsigned seed, ValueKind kind = ValueKind::wild) {
    std::vector<T> values = values_of<T>(rank(), count, seed, kind);
    comm_.all_reduce(view_of(values), stream_);
    EXPECT_TRUE(same_bits(values, sums<T>(count, seed, kind)));
  }

  template <typename T>
  void broadcast(std::size_t count, int root, unsigned seed) {
    std::vector<T> values = values_of<T>(rank(), count, seed);
    comm_.broadcast(view_of(values), root, stream_);
    EXPECT_TRUE(same_bits(values, values_of<T>(root, count, seed))) << "root " << root;
  }

  // The others' views may point anywhere.
  template <typename T>
  void send(std::size_t count, int from, int to, unsigned seed) {
    std::vector<T> values = values_of<T>(rank(), count, seed);
    const bool has_part = rank() == from || rank() == to;
    TensorView view = view_of(values);
    if (!has_part) view.data = nullptr;
    comm_.send(view, from, to, stream_);
    EXPECT_TRUE(same_bits(values, values_of<T>(rank() == to ? from : rank(), count, seed)))
        << "from " << from << " to " << to;
  }

  void barrier() { comm_.barrier(stream_); }

 private:
  int rank() const { return comm_.rank(); }
  std::size_t world() const { return static_cast<std::size_t>(comm_.world()); }
  std::ptrdiff_t begin_of(std::size_t count) const {
    return static_cast<std::ptrdiff_t>(count) * rank();
  }
  template <typename T>
  TensorView part_of(std::vector<T>& whole, std::size_t count) const {
    return view_of(whole).slice(begin_of(count), {static_cast<std::int64_t>(count)});
  }
  template <typename T>
  std::vector<T> all_values(std::size_t count, unsigned seed) const {
    std::vector<T> all;
    for (int other = 0; other < comm_.world(); ++other)
      std::ranges::copy(values_of<T>(other, count, seed), std::back_inserter(all));
    return all;
  }
  template <typename T>
  std::vector<T> sums(std::size_t count, unsigned seed, ValueKind kind = ValueKind::wild) const {
    return sum_in_rank_order<T>(comm_.world(), count, seed, kind);
  }

  Communicator& comm_;
  LazyStream stream_;
};

// Odd counts, around the sizes of vectors, cache lines and chunks.
inline constexpr std::size_t odd_counts[] = {0, 1, 7, 33, 1001, 4099};
inline constexpr std::size_t many_elements = 9001;

inline void numbers_its_rank(RankLinks& rank) {
  EXPECT_GE(rank.data->rank(), 0);
  EXPECT_LT(rank.data->rank(), rank.data->world());
  EXPECT_EQ(rank.control->rank(), rank.data->rank());
  EXPECT_EQ(rank.control->world(), rank.data->world());
  EXPECT_EQ(rank.data->failure(), "");
  EXPECT_EQ(rank.control->failure(), "");
}

inline void gathers_shards_in_rank_order(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (const std::size_t count : odd_counts) {
    check.all_gather<float>(count, 1);
    check.all_gather<bfloat16>(count, 2);
    check.all_gather<double>(count, 3);
    check.all_gather<std::uint8_t>(count, 4);
    check.all_gather<std::int32_t>(count, 5);
  }
  check.all_gather<bfloat16>(many_elements, 6);
}

inline void gathers_in_place(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (const std::size_t count : odd_counts) {
    check.all_gather_in_place<float>(count, 7);
    check.all_gather_in_place<bfloat16>(count, 8);
  }
}

inline void scatters_sums_taken_in_rank_order(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (const std::size_t count : odd_counts) {
    check.reduce_scatter<float>(count, 9);
    check.reduce_scatter<double>(count, 10);
    check.reduce_scatter<bfloat16>(count, 11);
  }
  check.reduce_scatter<bfloat16>(many_elements, 12);
}

inline void scatters_in_place(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (const std::size_t count : odd_counts) {
    check.reduce_scatter_in_place<float>(count, 13);
    check.reduce_scatter_in_place<double>(count, 14);
    check.reduce_scatter_in_place<bfloat16>(count, 15);
  }
}

inline void reduces_to_the_same_bits_on_every_rank(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (const std::size_t count : odd_counts) {
    check.all_reduce<float>(count, 16);
    check.all_reduce<double>(count, 17);
  }
  check.all_reduce<float>(many_elements, 18);
}

inline void adds_what_is_not_finite_or_not_normal(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  check.reduce_scatter<float>(1001, 19, ValueKind::special);
  check.reduce_scatter<double>(1001, 20, ValueKind::special);
  check.reduce_scatter<bfloat16>(1001, 21, ValueKind::special);
  check.all_reduce<float>(1001, 22, ValueKind::special);
  check.all_reduce<double>(1001, 23, ValueKind::special);
}

inline void broadcasts_from_any_root(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  for (int root = 0; root < rank.data->world(); ++root) {
    check.broadcast<float>(9, root, 24);
    check.broadcast<bfloat16>(4099, root, 25);
    check.broadcast<std::uint8_t>(0, root, 26);
  }
}

inline void sends_between_any_two(RankLinks& rank) {
  CheckedCollectives check(*rank.control);
  for (int from = 0; from < rank.control->world(); ++from) {
    for (int to = 0; to < rank.control->world(); ++to) {
      check.send<double>(3, from, to, 27);
      check.send<bfloat16>(1001, from, to, 28);
    }
  }
}

inline void waits_for_the_stream_before_it_reads(RankLinks& rank) {
  LazyStream stream;
  std::vector<float> values(4, 0);
  stream.pending = [&] { values.assign(4, 1); };
  rank.data->all_reduce(view_of(values), stream);
  EXPECT_EQ(values, std::vector<float>(4, static_cast<float>(rank.data->world())));
}

inline void keeps_collectives_apart_when_ranks_run_at_their_own_pace(RankLinks& rank) {
  LazyStream stream;
  std::mt19937 random(static_cast<unsigned>(rank.data->rank()));
  for (int round = 0; round < 200; ++round) {
    if (random() % 3 == 0) std::this_thread::yield();
    std::vector<float> values(3, static_cast<float>(round));
    rank.data->all_reduce(view_of(values), stream);
    const auto sum = static_cast<float>(round * rank.data->world());
    ASSERT_EQ(values, std::vector<float>(3, sum));
  }
}

template <typename T>
void random_reduction(CheckedCollectives& check, std::uint64_t choice, std::size_t count,
                      unsigned seed) {
  if (choice == 0) check.reduce_scatter<T>(count, seed);
  if (choice == 1) check.reduce_scatter_in_place<T>(count, seed);
  if (choice == 2) check.all_gather<T>(count, seed);
  if (choice == 3) check.all_gather_in_place<T>(count, seed);
}

inline void random_collective(CheckedCollectives& check, int world, std::mt19937_64& random) {
  const auto count = static_cast<std::size_t>(random() % (random() % 8 == 0 ? 3000 : 40));
  const auto root = static_cast<int>(random() % static_cast<unsigned>(world));
  const auto other = static_cast<int>(random() % static_cast<unsigned>(world));
  const auto seed = static_cast<unsigned>(random() % 100000);
  const std::uint64_t kind = random() % 18, choice = kind % 4;
  if (kind < 4) return random_reduction<float>(check, choice, count, seed);
  if (kind < 8) return random_reduction<double>(check, choice, count, seed);
  if (kind < 12) return random_reduction<bfloat16>(check, choice, count, seed);
  if (kind == 12) return check.all_reduce<float>(count, seed);
  if (kind == 13) return check.all_reduce<double>(count, seed);
  if (kind == 14) return check.broadcast<bfloat16>(count, root, seed);
  if (kind < 17) return check.send<float>(count, root, other, seed);
  check.barrier();
}

inline void random_collectives(Communicator& comm, int rounds, unsigned seed) {
  CheckedCollectives check(comm);
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round)
    random_collective(check, comm.world(), random);
}

inline void runs_many_collectives_in_a_row(RankLinks& rank) {
  random_collectives(*rank.data, 300, 29);
}

inline void runs_both_lines_at_once(RankLinks& rank) {
  std::jthread data([&] { expect_well([&] { random_collectives(*rank.data, 150, 30); }); });
  random_collectives(*rank.control, 150, 31);
}

// As plans count: (world - 1) shards for a gather and a reduce, nothing for the rest.
inline void counts_bytes_exchanged(RankLinks& rank) {
  CheckedCollectives check(*rank.data);
  const auto peers = static_cast<std::uint64_t>(rank.data->world() - 1);
  const std::uint64_t before = rank.data->bytes_exchanged();
  check.all_gather<bfloat16>(1001, 32);
  check.all_gather_in_place<float>(10, 33);
  EXPECT_EQ(rank.data->bytes_exchanged() - before, peers * (2002 + 40));
  check.reduce_scatter<bfloat16>(7, 34);
  check.reduce_scatter_in_place<double>(3, 35);
  EXPECT_EQ(rank.data->bytes_exchanged() - before, peers * (2002 + 40 + 14 + 24));
  check.all_reduce<float>(9, 36);
  check.broadcast<float>(9, 0, 37);
  check.send<float>(9, 0, rank.data->world() - 1, 38);
  check.barrier();
  EXPECT_EQ(rank.data->bytes_exchanged() - before, peers * (2002 + 40 + 14 + 24));
}

inline void lets_others_read_its_counters_while_it_works(RankLinks& rank) {
  std::jthread reader([&](const std::stop_token& stop) {
    for (std::uint64_t last = 0; !stop.stop_requested(); std::this_thread::yield()) {
      const std::uint64_t now = rank.data->bytes_exchanged();
      EXPECT_GE(now, last);
      EXPECT_EQ(rank.data->failure(), "");
      last = now;
    }
  });
  random_collectives(*rank.data, 100, 39);
}

inline std::span<const LastingCheck> lasting_checks() {
  static constexpr LastingCheck checks[] = {
      {"NumbersItsRank", numbers_its_rank},
      {"GathersShardsInRankOrder", gathers_shards_in_rank_order},
      {"GathersInPlace", gathers_in_place},
      {"ScattersSumsTakenInRankOrder", scatters_sums_taken_in_rank_order},
      {"ScattersInPlace", scatters_in_place},
      {"ReducesToTheSameBitsOnEveryRank", reduces_to_the_same_bits_on_every_rank},
      {"AddsWhatIsNotFiniteOrNotNormal", adds_what_is_not_finite_or_not_normal},
      {"BroadcastsFromAnyRoot", broadcasts_from_any_root},
      {"SendsBetweenAnyTwo", sends_between_any_two},
      {"WaitsForTheStreamBeforeItReads", waits_for_the_stream_before_it_reads},
      {"KeepsCollectivesApart", keeps_collectives_apart_when_ranks_run_at_their_own_pace},
      {"RunsManyCollectivesInARow", runs_many_collectives_in_a_row},
      {"RunsBothLinesAtOnce", runs_both_lines_at_once},
      {"CountsBytesExchanged", counts_bytes_exchanged},
      {"LetsOthersReadItsCounters", lets_others_read_its_counters_while_it_works},
  };
  return checks;
}

}  // namespace strata::testing
