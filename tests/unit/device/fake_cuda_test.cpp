// The fake finds what it is there to find, and nothing else.

#include "fake_cuda/fake_cuda.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two streams of a device, memory, and an event.
class FakeCudaUse : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.stream_create(first_);
    fake_.stream_create(second_);
    fake_.event_create(event_);
    void* data = nullptr;
    fake_.allocate(data, 1000);
    memory_ = static_cast<std::byte*>(data);
    fake_.register_host(host_.data(), host_.size());
  }
  void write(CudaStreamHandle stream, const std::string& what, int value) {
    fake_.launch(stream, what, {{memory_, 100, Touch::writes}},
                 [this, value] { done_.push_back(value); });
  }

  FakeCuda fake_{{}};
  CudaStreamHandle first_ = nullptr, second_ = nullptr;
  CudaEventHandle event_ = nullptr;
  std::byte* memory_ = nullptr;
  std::vector<std::byte> host_ = std::vector<std::byte>(1000);
  std::vector<int> done_;
};

TEST_F(FakeCudaUse, RunsAStreamsWorkInOrder) {
  for (int i = 0; i < 50; ++i) write(first_, "a", i);
  fake_.stream_synchronize(first_);
  EXPECT_TRUE(std::ranges::is_sorted(done_));
  EXPECT_EQ(done_.size(), 50u);
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

TEST_F(FakeCudaUse, RunsWorkLaterThanItIsIssued) {
  write(first_, "a", 1);
  EXPECT_THAT(done_, IsEmpty());
}

TEST_F(FakeCudaUse, ComplainsOfTwoStreamsThatWriteWithoutAWait) {
  write(first_, "a", 1);
  write(second_, "b", 2);
  EXPECT_THAT(fake_.complaints(),
              ElementsAre(AllOf(HasSubstr("missing wait"), HasSubstr("b touches memory of a"))));
}

// Luck does not count: the work is over, but nobody knew.
TEST_F(FakeCudaUse, ComplainsEvenWhenTheWorkHappensToBeOver) {
  write(first_, "a", 1);
  for (int i = 0; i < 200 && done_.empty(); ++i) fake_.set_device(0);
  ASSERT_THAT(done_, ElementsAre(1));
  write(second_, "b", 2);
  EXPECT_EQ(fake_.num_complaints(), 1u);
}

TEST_F(FakeCudaUse, AcceptsAWaitForAnEventAlsoThroughOtherStreams) {
  CudaStreamHandle third = nullptr;
  CudaEventHandle passed_on = nullptr;
  fake_.stream_create(third);
  fake_.event_create(passed_on);
  write(first_, "a", 1);
  fake_.event_record(event_, first_);
  fake_.stream_wait_event(third, event_);
  fake_.event_record(passed_on, third);
  fake_.stream_wait_event(second_, passed_on);
  write(second_, "b", 2);
  fake_.stream_synchronize(second_);
  EXPECT_THAT(done_, ElementsAre(1, 2));
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

TEST_F(FakeCudaUse, AcceptsWorkThatTheHostHasWaitedFor) {
  write(first_, "a", 1);
  fake_.event_record(event_, first_);
  fake_.event_synchronize(event_);
  write(second_, "b", 2);
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

TEST_F(FakeCudaUse, AcceptsReadersSideBySide) {
  fake_.launch(first_, "a", {{memory_, 100, Touch::reads}}, [] {});
  fake_.launch(second_, "b", {{memory_, 100, Touch::reads}}, [] {});
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

TEST_F(FakeCudaUse, ComplainsWhenTheHostTouchesWhatACopyStillNeeds) {
  fake_.copy(memory_, host_.data(), 500, CudaCopy::host_to_device, first_);
  fake_.host_touches({host_.data() + 499, 1, Touch::reads}, "a read");
  EXPECT_THAT(fake_.complaints(), IsEmpty());
  fake_.host_touches({host_.data() + 500, 100, Touch::writes}, "a write beside it");
  EXPECT_THAT(fake_.complaints(), IsEmpty());
  fake_.host_touches({host_.data() + 499, 1, Touch::writes}, "a write");
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("the host does not wait: a write")));
}

TEST_F(FakeCudaUse, ComplainsOfCopiesOfAWrongKind) {
  fake_.copy(memory_, host_.data(), 500, CudaCopy::device_to_host, first_);
  fake_.copy(host_.data(), memory_, 500, CudaCopy::device_to_device, first_);
  EXPECT_EQ(fake_.num_complaints(), 2u);
}

TEST_F(FakeCudaUse, ComplainsOfHostMemoryThatIsNotRegisteredWhole) {
  fake_.unregister_host(host_.data());
  fake_.register_host(host_.data(), 400);
  fake_.copy(memory_, host_.data(), 400, CudaCopy::host_to_device, first_);
  EXPECT_THAT(fake_.complaints(), IsEmpty());
  fake_.copy(memory_, host_.data(), 401, CudaCopy::host_to_device, first_);
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("host memory that is registered")));
}

TEST_F(FakeCudaUse, ComplainsOfAThreadThatWaitsAndMustNot) {
  std::thread([&] {
    fake_.forbid_waiting("compute");
    fake_.stream_synchronize(first_);
    EXPECT_THAT(fake_.complaints(), IsEmpty()) << "there was nothing to wait for";
    write(first_, "a", 1);
    fake_.stream_synchronize(first_);
  }).join();
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("the thread compute waits")));
}

TEST_F(FakeCudaUse, ComplainsOfAThreadThatForgotItsDevice) {
  CudaStreamHandle other = nullptr;
  fake_.set_device(1);
  fake_.stream_create(other);
  fake_.set_device(0);
  fake_.launch(other, "a", {}, [] {});
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("another device")));
}

TEST_F(FakeCudaUse, ComplainsOfAnEventThatWasNeverRecorded) {
  fake_.stream_wait_event(second_, event_);
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("before its record")));
}

TEST_F(FakeCudaUse, ComplainsOfWhatIsGivenBackTwice) {
  fake_.release(memory_);
  fake_.release(memory_);
  fake_.stream_destroy(first_);
  fake_.stream_destroy(first_);
  fake_.event_destroy(event_);
  fake_.event_destroy(event_);
  fake_.unregister_host(host_.data());
  fake_.unregister_host(host_.data());
  EXPECT_EQ(fake_.num_complaints(), 4u);
}

TEST_F(FakeCudaUse, ListsWhatIsNotGivenBack) {
  EXPECT_THAT(fake_.leaks(),
              UnorderedElementsAre("2 streams", "1 events", "1 allocations on device 0",
                                   "1 registrations of host memory"));
}

TEST_F(FakeCudaUse, KnowsWhetherAWaitThatIsNotMadeWouldHaveMattered) {
  FakeCuda fake({.dropped_wait = 0});
  CudaStreamHandle one = nullptr, two = nullptr;
  CudaEventHandle event = nullptr;
  fake.stream_create(one);
  fake.stream_create(two);
  fake.event_create(event);
  fake.launch(one, "a", {}, [] {});
  fake.event_record(event, one);
  fake.stream_wait_event(two, event);
  EXPECT_FALSE(fake.dropped_wait_mattered());
  fake.launch(two, "b", {}, [] {});
  EXPECT_TRUE(fake.dropped_wait_mattered());
}

TEST_F(FakeCudaUse, RefusesToRegisterWhatItIsToldTo) {
  std::vector<std::byte> more(1000);
  fake_.refuse_pinning({more.data() + 999, 1});
  EXPECT_EQ(fake_.register_host(more.data(), 1000), CudaStatus::memory_allocation);
  EXPECT_EQ(fake_.register_host(more.data(), 999), CudaStatus::success);
  EXPECT_THAT(fake_.registrations(), UnorderedElementsAre(1000u, 999u));
}

TEST_F(FakeCudaUse, ComplainsOfALaunchAfterAnErrorThatNobodyTook) {
  fake_.refuse_pinning(host_);
  fake_.register_host(host_.data(), host_.size());
  write(first_, "a", 1);
  EXPECT_THAT(fake_.complaints(), ElementsAre(HasSubstr("blamed for an error of before")));
  EXPECT_EQ(fake_.take_last_error(), CudaStatus::memory_allocation);
  write(first_, "a", 2);
  EXPECT_EQ(fake_.num_complaints(), 1u);
}

}  // namespace
}  // namespace strata::testing
