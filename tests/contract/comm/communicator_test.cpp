// What every Communicator promises, over several world sizes. A new implementation joins by adding
// a factory at the end.

#include "strata/comm/communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

using testing::HasSubstr;
using Communicators = std::vector<std::unique_ptr<Communicator>>;
using Factory = std::function<Communicators(int world, double timeout_s)>;

// Work is done when it is waited for, so a collective that does not wait reads what was there
// before.
class LazyStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {
    if (pending) std::exchange(pending, nullptr)();
  }
  std::function<void()> pending;
};

template <typename T>
TensorView view(std::vector<T>& values) {
  const DType dtype = sizeof(T) == 8 ? DType::f64 : DType::f32;
  return {values.data(), dtype, {static_cast<std::int64_t>(values.size())}};
}

// Magnitudes differ so much that another order of summation gives other bits.
template <typename T>
std::vector<T> random_values(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(1000 + rank));
  std::normal_distribution<double> mantissa;
  std::uniform_int_distribution<int> exponent(-12, 12);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(std::ldexp(mantissa(random), exponent(random)));
  return values;
}

template <typename T>
std::vector<T> sum_in_rank_order(int world, std::size_t count) {
  std::vector<T> sum = random_values<T>(0, count);
  for (int rank = 1; rank < world; ++rank) {
    const std::vector<T> values = random_values<T>(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

Communicators local_data_lines(int world, double timeout_s) {
  Communicators lines;
  for (RankLinks& rank : make_local_ranks(world, {.timeout_s = timeout_s}))
    lines.push_back(std::move(rank.data));
  return lines;
}

struct Case {
  std::string name;
  Factory make;
  int world;
};

class CommunicatorContract : public testing::TestWithParam<Case> {
 protected:
  using RankWork = std::function<void(Communicator&, LazyStream&)>;

  int world() const { return GetParam().world; }
  Communicators make(double timeout_s = 60) const { return GetParam().make(world(), timeout_s); }

  // Every rank on its own thread; the communicator lives as long as its rank.
  static void run(Communicators ranks, const RankWork& work) {
    std::vector<std::jthread> threads;
    for (auto& rank : ranks) {
      threads.emplace_back([&work, rank = std::move(rank)] {
        LazyStream stream;
        work(*rank, stream);
      });
    }
  }
  void run(const RankWork& work) const { run(make(), work); }
};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_P(CommunicatorContract, NumbersItsRanks) {
  const Communicators ranks = make();
  ASSERT_EQ(static_cast<int>(ranks.size()), world());
  for (int rank = 0; rank < world(); ++rank) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->rank(), rank);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)]->world(), world());
  }
}

TEST_P(CommunicatorContract, GathersShardsInRankOrder) {
  run([&](Communicator& comm, LazyStream& stream) {
    std::vector<float> shard(7, static_cast<float>(comm.rank() + 1)),
        gathered(7 * static_cast<std::size_t>(world()));
    comm.all_gather(view(shard), view(gathered), stream);
    for (std::size_t i = 0; i < gathered.size(); ++i)
      EXPECT_EQ(gathered[i], static_cast<float>(i / 7 + 1));
  });
}

TEST_P(CommunicatorContract, GathersInPlace) {
  run([&](Communicator& comm, LazyStream& stream) {
    std::vector<float> gathered(5 * static_cast<std::size_t>(world()), -1);
    const TensorView shard = view(gathered).slice(5 * comm.rank(), {5});
    for (int i = 0; i < 5; ++i) shard.as<float>()[i] = static_cast<float>(comm.rank());
    comm.all_gather(shard, view(gathered), stream);
    for (std::size_t i = 0; i < gathered.size(); ++i)
      EXPECT_EQ(gathered[i], static_cast<float>(i / 5));
  });
}

TEST_P(CommunicatorContract, ScattersSumsTakenInRankOrder) {
  const std::size_t part = 33, count = part * static_cast<std::size_t>(world());
  const std::vector<float> expected = sum_in_rank_order<float>(world(), count);
  run([&](Communicator& comm, LazyStream& stream) {
    std::vector<float> full = random_values<float>(comm.rank(), count), shard(part);
    comm.reduce_scatter(view(full), view(shard), stream);
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(part) * comm.rank();
    EXPECT_TRUE(std::equal(shard.begin(), shard.end(), begin));
    EXPECT_EQ(full, random_values<float>(comm.rank(), count));
  });
}

TEST_P(CommunicatorContract, ReducesToTheSameBitsOnEveryRank) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1001}}) {
    run([&](Communicator& comm, LazyStream& stream) {
      std::vector<float> singles = random_values<float>(comm.rank(), count);
      std::vector<double> doubles = random_values<double>(comm.rank(), count);
      comm.all_reduce(view(singles), stream);
      comm.all_reduce(view(doubles), stream);
      EXPECT_EQ(singles, sum_in_rank_order<float>(world(), count));
      EXPECT_EQ(doubles, sum_in_rank_order<double>(world(), count));
    });
  }
}

TEST_P(CommunicatorContract, BroadcastsFromAnyRoot) {
  run([&](Communicator& comm, LazyStream& stream) {
    for (int root = 0; root < world(); ++root) {
      std::vector<float> values(9, static_cast<float>(comm.rank()));
      comm.broadcast(view(values), root, stream);
      EXPECT_EQ(values, std::vector<float>(9, static_cast<float>(root)));
    }
  });
}

TEST_P(CommunicatorContract, HoldsABarrierUntilAllRanksCame) {
  std::atomic<int> came = 0;
  run([&](Communicator& comm, LazyStream& stream) {
    for (int round = 1; round <= 50; ++round) {
      ++came;
      comm.barrier(stream);
      EXPECT_EQ(came.load(), round * world());
      comm.barrier(stream);
    }
  });
}

TEST_P(CommunicatorContract, WaitsForTheStreamBeforeItReads) {
  run([&](Communicator& comm, LazyStream& stream) {
    std::vector<float> values(4, 0);
    stream.pending = [&] { values.assign(4, 1); };
    comm.all_reduce(view(values), stream);
    EXPECT_EQ(values, std::vector<float>(4, static_cast<float>(world())));
  });
}

TEST_P(CommunicatorContract, KeepsCollectivesApartWhenRanksRunAtTheirOwnPace) {
  run([&](Communicator& comm, LazyStream& stream) {
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    for (int round = 0; round < 300; ++round) {
      if (random() % 3 == 0) std::this_thread::yield();
      std::vector<float> values(3, static_cast<float>(round));
      comm.all_reduce(view(values), stream);
      ASSERT_EQ(values, std::vector<float>(3, static_cast<float>(round * world())));
    }
  });
}

TEST_P(CommunicatorContract, EndsTheWaitsForARankThatLeaves) {
  if (world() == 1) GTEST_SKIP() << "nobody waits";
  const int leaver = world() - 1;
  run([&](Communicator& comm, LazyStream& stream) {
    comm.barrier(stream);
    if (comm.rank() == leaver) return;
    std::vector<float> values(3);
    const std::string error = error_of([&] { comm.all_reduce(view(values), stream); });
    EXPECT_THAT(error, HasSubstr("all_reduce"));
    EXPECT_THAT(error, HasSubstr("rank " + std::to_string(leaver)));
  });
}

TEST_P(CommunicatorContract, EndsAllCallsAfterAFailure) {
  if (world() == 1) GTEST_SKIP() << "nobody waits";
  run([&](Communicator& comm, LazyStream& stream) {
    if (comm.rank() == 0) return;
    EXPECT_NE(error_of([&] { comm.barrier(stream); }), "no error");
    std::vector<float> values(3);
    EXPECT_THAT(error_of([&] { comm.broadcast(view(values), 0, stream); }), HasSubstr("broadcast"));
  });
}

TEST_P(CommunicatorContract, NamesTheRankThatCallsSomethingElse) {
  if (world() == 1) GTEST_SKIP() << "nobody disagrees";
  const int odd = world() - 1;
  run([&](Communicator& comm, LazyStream& stream) {
    std::vector<float> values(comm.rank() == odd ? 4 : 3);
    const std::string error = error_of([&] { comm.all_reduce(view(values), stream); });
    EXPECT_THAT(error, HasSubstr("rank " + std::to_string(odd) + " called all_reduce of 4 f32"));
    EXPECT_THAT(error, HasSubstr("rank 0 called all_reduce of 3 f32"));
  });
}

TEST_P(CommunicatorContract, NamesTheRankThatDoesNotCome) {
  if (world() == 1) GTEST_SKIP() << "nobody waits";
  Communicators ranks = make(0.05);
  const std::unique_ptr<Communicator> absent = std::move(ranks.back());
  ranks.pop_back();
  run(std::move(ranks), [&](Communicator& comm, LazyStream& stream) {
    std::vector<float> values(3);
    const std::string error = error_of([&] { comm.broadcast(view(values), 0, stream); });
    EXPECT_THAT(error, HasSubstr("broadcast on rank " + std::to_string(comm.rank())));
    EXPECT_THAT(error, HasSubstr("rank " + std::to_string(world() - 1)));
  });
}

TEST(LocalCommunicators, NeedAtLeastOneRank) { EXPECT_THROW(make_local_ranks(0), ConfigError); }

std::vector<Case> cases(const std::string& name, const Factory& make) {
  std::vector<Case> all;
  for (int world : {1, 2, 3, 5, 8}) all.push_back({name, make, world});
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name + std::to_string(info.param.world);
}

INSTANTIATE_TEST_SUITE_P(Local, CommunicatorContract,
                         testing::ValuesIn(cases("local", local_data_lines)), case_name);

}  // namespace
}  // namespace strata
