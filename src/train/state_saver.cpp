#include "train/state_saver.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "io/common/awaited_transfer.hpp"
#include "io/store/aligned_memory.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "train/state_pieces.hpp"
#include "train/weight_elements.hpp"

namespace strata {
namespace {

constexpr std::size_t num_buffers = 4;

std::uint64_t buffer_bytes(const Program& program) {
  const std::uint64_t tile = static_cast<std::uint64_t>(program.tile_elements) * sizeof(float);
  return align_up(tile, checkpoint_alignment) + checkpoint_alignment;
}

// Memory that one piece is on its way to the disk in; the writer keeps what went wrong there.
class SaveBuffer {
 public:
  explicit SaveBuffer(std::uint64_t bytes)
      : memory_(checkpoint_alignment, bytes, "writing a checkpoint") {}
  ~SaveBuffer() { wait(); }
  SaveBuffer(const SaveBuffer&) = delete;
  SaveBuffer& operator=(const SaveBuffer&) = delete;

  void wait() {
    if (std::exchange(is_under_way_, false)) transfer_.wait();
  }
  IoCompletion& begin() {
    is_under_way_ = true;
    return transfer_;
  }
  std::span<std::byte> memory() const { return memory_.span(); }

 private:
  AlignedMemory memory_;
  AwaitedTransfer transfer_;
  bool is_under_way_ = false;
};

class StateSaver {
 public:
  StateSaver(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer)
      : program_(run.program), state_(state), writer_(writer) {
    for (auto& buffer : buffers_) buffer = std::make_unique<SaveBuffer>(buffer_bytes(run.program));
  }

  void save(int index, const StateVector& vector) {
    const ShardId shard = state_shard(program_, vector.role, vector.block);
    for (const StateSpan& span : state_spans(program_, shard)) {
      const int tile = program_.tile_at(shard, span.place);
      if (tile < 0 || !program_.is_own(shard, tile)) continue;
      SaveBuffer& buffer = *buffers_[next_++ % num_buffers];
      buffer.wait();
      fill(vector, shard, tile, span, buffer.memory());
      writer_.write(index, span.first, span.count, buffer.memory(), buffer.begin());
    }
  }

 private:
  void fill(const StateVector& vector, ShardId shard, int tile, const StateSpan& span,
            std::span<std::byte> target) {
    const auto bytes = target.first(static_cast<std::size_t>(storage_of(vector.dtype, span.count)));
    const std::span<const std::byte> source = state_.read(shard, tile);
    if (program_.shard(shard).dtype == DType::u16) return join(vector, source, span, bytes);
    moment_to_vector(vector.dtype, program_.tile_count(shard, tile), source, span.count, bytes);
  }

  // Of a split master: the low bits are put aside, for the weights are read through the same
  // buffer.
  void join(const StateVector& vector, std::span<const std::byte> low_bits, const StateSpan& span,
            std::span<std::byte> target) {
    low_bits_.assign(low_bits.begin(), low_bits.end());
    const ShardId weight = state_shard(program_, Role::weight, vector.block);
    const std::span<float> values(reinterpret_cast<float*>(target.data()),
                                  static_cast<std::size_t>(span.count));
    widen_elements(state_.read(weight, program_.tile_at(weight, span.place)).data(), DType::bf16,
                   values);
    join_low_bits(low_bits_.data(), values);
  }

  static std::int64_t storage_of(DType dtype, std::int64_t count) {
    return static_cast<std::int64_t>(state_vector_bytes({Role::moment1, "", dtype, count}));
  }

  const Program& program_;
  StateAccess& state_;
  CheckpointWriter& writer_;
  std::vector<std::byte> low_bits_;
  std::array<std::unique_ptr<SaveBuffer>, num_buffers>
      buffers_;  // last: they wait for their writes
  std::size_t next_ = 0;
};

}  // namespace

void save_state(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer,
                const std::vector<StateVector>& vectors) {
  StateSaver saver(run, state, writer);
  for (std::size_t i = 0; i < vectors.size(); ++i) saver.save(static_cast<int>(i), vectors[i]);
}

// The low bits put aside are half a buffer at most.
std::uint64_t save_buffer_bytes(const Program& program) {
  return (num_buffers + 1) * buffer_bytes(program);
}

}  // namespace strata
