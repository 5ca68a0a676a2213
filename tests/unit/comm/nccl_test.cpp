// What is particular to ranks over NCCL: streams, staging memory, leaving; and that the fake sees
// what is wrong.

#include <gmock/gmock.h>

#include "contract/comm/communicator_job_checks.hpp"
#include "fake_nccl/nccl_ranks_of_test.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace strata::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A rank with values on its device, as the executor has them.
class DeviceRank {
 public:
  DeviceRank(FakeCuda& cuda, RankLinks& links, NcclJob& job)
      : links_(links),
        device_(make_cuda_device(cuda, links.control->rank(), {})),
        memory_(device_->allocate(1 << 20)),
        host_(device_->allocate_pinned(1 << 20)),
        staging_(device_->allocate(4096)) {
    job.join(links, *device_,
             {.staging = {staging_.data(), staging_.bytes()},
              .sum = make_streamed_sum(cuda),
              .watch_s = 0.001});
    for (auto& stream : streams_) stream = device_->make_stream("rank");
  }
  ~DeviceRank() { links_.data.reset(); }

  Communicator& data() { return *links_.data; }
  Stream& stream(int index) { return *streams_[static_cast<std::size_t>(index)]; }
  TensorView floats(std::int64_t begin, std::int64_t count) const {
    return {memory_.data() + begin * 4, DType::f32, {count}};
  }
  TensorView pinned(std::int64_t begin, std::int64_t count) const {
    return {host_.data() + begin * 4, DType::f32, {count}};
  }
  void put(const std::vector<float>& values, TensorView view, Stream& stream) {
    device_->copy(view.as<std::byte>(), reinterpret_cast<const std::byte*>(values.data()),
                  values.size() * 4, CopyKind::host_to_device, stream);
  }
  std::vector<float> get(TensorView view, Stream& stream) {
    std::vector<float> values(static_cast<std::size_t>(view.count()));
    device_->copy(reinterpret_cast<std::byte*>(values.data()), view.as<std::byte>(),
                  values.size() * 4, CopyKind::device_to_host, stream);
    return values;
  }

 private:
  RankLinks& links_;
  std::unique_ptr<Device> device_;
  Slab memory_, host_, staging_;
  std::array<std::unique_ptr<Stream>, 2> streams_;
};

// Runs `body` for each rank on its thread, on a machine that complains of nothing.
void on_devices(int world, std::uint64_t seed, const std::function<void(DeviceRank&)>& body) {
  FakeCuda cuda({.seed = seed, .num_devices = world});
  FakeNccl nccl(cuda, {.seed = seed});
  std::vector<RankLinks> ranks = make_local_ranks(world);
  std::unique_ptr<NcclJob> job = make_nccl_job(world == 1 ? nullptr : &nccl);
  {
    std::vector<std::jthread> threads;
    for (RankLinks& rank : ranks)
      threads.emplace_back([&] {
        expect_well([&] {
          DeviceRank own(cuda, rank, *job);
          body(own);
        });
      });
  }
  job.reset();
  EXPECT_THAT(cuda.complaints(), IsEmpty());
  EXPECT_THAT(nccl.complaints(), IsEmpty());
  EXPECT_THAT(nccl.leaks(), IsEmpty());
}

// Sums share the staging memory: the second waits for the first though it is on another stream.
TEST(NcclRank, MayUseOneStreamAfterAnother) {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    on_devices(3, seed, [](DeviceRank& rank) {
      const int own = rank.data().rank();
      for (const int i : {0, 1}) {
        const TensorView full = rank.floats(20000 * i, 9000),
                         sum = rank.floats(20000 * i + 9000, 3000);
        rank.put(values_of<float>(own, 9000, 70 + static_cast<unsigned>(i)), full, rank.stream(i));
        rank.data().reduce_scatter(full, sum, rank.stream(i));
      }
      for (const int i : {0, 1}) {
        const std::vector<float> all =
            sum_in_rank_order<float>(3, 9000, 70 + static_cast<unsigned>(i));
        const std::vector<float> got =
            rank.get(rank.floats(20000 * i + 9000, 3000), rank.stream(i));
        EXPECT_TRUE(same_bits(got.data(), all.data() + 3000 * own, 3000));
      }
    });
}

// The norm's sums and the losses are the host's: NCCL reads and writes registered memory.
TEST(NcclRank, GathersPinnedMemoryOfTheHost) {
  on_devices(2, 3, [](DeviceRank& rank) {
    const int own = rank.data().rank();
    rank.pinned(own, 1).as<float>()[0] = static_cast<float>(own + 5);
    rank.data().all_gather(rank.pinned(own, 1), rank.pinned(0, 2), rank.stream(0));
    rank.stream(0).synchronize();
    EXPECT_EQ(rank.pinned(0, 2).as<float>()[0], 5.0f);
    EXPECT_EQ(rank.pinned(0, 2).as<float>()[1], 6.0f);
  });
}

TEST(NcclRank, IsCompleteOnItsStream) {
  on_devices(2, 1, [](DeviceRank& rank) {
    EXPECT_EQ(rank.data().completion(), Completion::on_stream);
    rank.data().barrier(rank.stream(0));
    rank.stream(0).synchronize();
  });
}

TEST(NcclRank, NeedsNoLibraryWhenItIsAlone) {
  on_devices(1, 1, [](DeviceRank& rank) {
    const std::vector<float> values = values_of<float>(0, 100, 80);
    rank.put(values, rank.floats(0, 100), rank.stream(0));
    rank.data().all_gather(rank.floats(0, 100), rank.floats(100, 100), rank.stream(0));
    rank.data().reduce_scatter(rank.floats(100, 100), rank.floats(200, 100), rank.stream(0));
    rank.data().all_reduce(rank.floats(200, 100), rank.stream(0));
    rank.data().barrier(rank.stream(0));
    EXPECT_EQ(rank.get(rank.floats(200, 100), rank.stream(0)), values);
  });
}

// Of memory for sums: down to the least, up to more than a sum has.
TEST(NcclRank, GivesTheSameBitsWithHoweverLittleStaging) {
  for (const std::uint64_t bytes : {256u, 1000u, 70000u, 1u << 20}) {
    NcclMachine machine(3, {.staging_bytes_per_rank = bytes});
    std::vector<RankLinks> ranks = make_local_ranks(3);
    std::vector<std::jthread> threads;
    for (RankLinks& rank : ranks)
      threads.emplace_back([&] {
        expect_well([&] {
          machine.join(rank);
          CheckedCollectives check(*rank.data);
          check.reduce_scatter<float>(3001, 90, ValueKind::special);
          check.reduce_scatter<double>(1003, 91);
          check.reduce_scatter<bfloat16>(5003, 92, ValueKind::special);
          check.all_reduce<double>(777, 93);
        });
        rank.data.reset();
      });
    threads.clear();
    machine.end();
    EXPECT_THAT(machine.cuda().complaints(), IsEmpty());
    EXPECT_THAT(machine.nccl().complaints(), IsEmpty());
  }
}

// --- The fake

TEST(FakeNcclLibrary, ComplainsOfWhatItWouldNotForgive) {
  FakeCuda cuda({});
  FakeNccl nccl(cuda, {});
  CudaStreamHandle stream = nullptr;
  cuda.stream_create(stream);
  NcclCommHandle comm = nullptr;
  nccl.comm_init(comm, 1, {}, 0);
  nccl.send(nullptr, 4, 0, comm, stream);
  nccl.group_start();
  nccl.group_start();
  nccl.group_end();
  nccl.comm_destroy(comm);
  nccl.comm_abort(comm);
  EXPECT_THAT(nccl.complaints(), Contains("a call outside of groups"));
  EXPECT_THAT(nccl.complaints(), Contains("a group begins within another"));
  EXPECT_THAT(nccl.complaints(), Contains(HasSubstr("destroyed before all ranks")));
  EXPECT_THAT(nccl.complaints(), Contains("abort of a communicator that is none"));
  cuda.stream_destroy(stream);
}

TEST(FakeNcclLibrary, ComplainsOfRanksThatGiveAndTakeOtherThings) {
  FakeCuda cuda({});
  FakeNccl nccl(cuda, {.seed = 2});
  std::array<CudaStreamHandle, 2> streams{};
  std::array<NcclCommHandle, 2> comms{};
  std::array<void*, 2> memory{};
  for (std::size_t rank = 0; rank < 2; ++rank) {
    cuda.stream_create(streams[rank]);
    cuda.allocate(memory[rank], 64);
    nccl.comm_init(comms[rank], 2, {}, static_cast<int>(rank));
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    nccl.group_start();
    nccl.all_gather(memory[rank], memory[rank], rank == 0 ? 8 : 16, comms[rank], streams[rank]);
    nccl.group_end();
    NcclStatus state = NcclStatus::in_progress;
    while (state == NcclStatus::in_progress) nccl.comm_state(comms[rank], state);
  }
  for (const CudaStreamHandle stream : streams) cuda.stream_synchronize(stream);
  EXPECT_THAT(nccl.complaints(), Contains(HasSubstr("takes all_gather of")));
}

}  // namespace
}  // namespace strata::testing
