#include "cli/checkpoint_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace strata {
namespace {

constexpr std::int64_t chunk_elements = 256 * norm_chunk_elements;

struct VectorDiff {
  std::int64_t elements = 0;  // that differ; of moments in 8 bits, bytes
  double largest = 0;         // difference; f32 and bf16
};

float element(const std::vector<std::byte>& bytes, DType dtype, std::size_t i) {
  if (dtype == DType::bf16) return to_float(reinterpret_cast<const bfloat16*>(bytes.data())[i]);
  return reinterpret_cast<const float*>(bytes.data())[i];
}

void compare(const std::vector<std::byte>& one, const std::vector<std::byte>& other, DType dtype,
             VectorDiff& diff) {
  if (one == other) return;
  const auto width = static_cast<std::size_t>(dtype_bytes(dtype));
  for (std::size_t i = 0; i < one.size() / width; ++i) {
    if (std::memcmp(&one[i * width], &other[i * width], width) == 0) continue;
    ++diff.elements;
    if (dtype == DType::q8) continue;
    const double apart = std::abs(static_cast<double>(element(one, dtype, i)) -
                                  static_cast<double>(element(other, dtype, i)));
    diff.largest = std::max(diff.largest, apart);
  }
}

VectorDiff compare(const CheckpointReader& one, int a, const CheckpointReader& other, int b) {
  const StateVector& vector = one.info().vectors[static_cast<std::size_t>(a)];
  VectorDiff diff;
  std::vector<std::byte> left, right;
  for (std::int64_t first = 0; first < vector.count; first += chunk_elements) {
    const std::int64_t count = std::min(chunk_elements, vector.count - first);
    left.resize(state_vector_bytes({vector.role, "", vector.dtype, count}));
    right.resize(left.size());
    one.read(a, first, count, left);
    other.read(b, first, count, right);
    compare(left, right, vector.dtype, diff);
  }
  return diff;
}

class Differ {
 public:
  template <typename T>
  void field(const char* name, const T& one, const T& other) {
    if (one == other) return;
    diff_.equal = false;
    diff_.text += fmt::format("{}: {} | {}\n", name, one, other);
  }
  void note(const RunNote& one, const RunNote& other) {
    field("step", one.step, other.step);
    field("updates applied", one.updates_applied, other.updates_applied);
    field("skipped steps", one.skipped_steps, other.skipped_steps);
    field("micro-batches seen", one.micro_batches_seen, other.micro_batches_seen);
    field("rows per micro-batch", one.rows_per_micro_batch, other.rows_per_micro_batch);
    field("sequence length", one.sequence_length, other.sequence_length);
    field("seed", one.seed, other.seed);
    field("data seed", one.data_seed, other.data_seed);
    field("data", one.data_fingerprint, other.data_fingerprint);
    field("model", one.model_fingerprint, other.model_fingerprint);
  }
  void vectors(const CheckpointReader& one, const CheckpointReader& other) {
    for (std::size_t i = 0; i < one.info().vectors.size(); ++i)
      vector(one, static_cast<int>(i), other);
    for (const StateVector& vector : other.info().vectors)
      if (!one.find(vector.role, vector.block)) only(vector, other.info().path);
  }
  CheckpointDiff take() && {
    if (diff_.equal) diff_.text = "no difference\n";
    return std::move(diff_);
  }

 private:
  void only(const StateVector& vector, const std::string& path) {
    diff_.equal = false;
    diff_.text += fmt::format("{}: only in {}\n", state_vector_name(vector), path);
  }
  void vector(const CheckpointReader& one, int index, const CheckpointReader& other) {
    const StateVector& vector = one.info().vectors[static_cast<std::size_t>(index)];
    const auto found = other.find(vector.role, vector.block);
    if (!found) return only(vector, one.info().path);
    const StateVector& counterpart = other.info().vectors[static_cast<std::size_t>(*found)];
    if (!(vector == counterpart)) {
      diff_.equal = false;
      diff_.text +=
          fmt::format("{}: {} {} | {} {}\n", state_vector_name(vector), vector.count,
                      dtype_name(vector.dtype), counterpart.count, dtype_name(counterpart.dtype));
      return;
    }
    const VectorDiff apart = compare(one, index, other, *found);
    if (apart.elements == 0) return;
    diff_.equal = false;
    diff_.text += fmt::format(
        "{}: {} of {} elements differ{}\n", state_vector_name(vector), apart.elements, vector.count,
        vector.dtype == DType::q8 ? "" : fmt::format(", by {:.3g} at most", apart.largest));
  }

  CheckpointDiff diff_;
};

}  // namespace

CheckpointDiff diff_checkpoints(const CheckpointReader& one, const CheckpointReader& other) {
  Differ differ;
  differ.note(one.info().note, other.info().note);
  differ.vectors(one, other);
  return std::move(differ).take();
}

}  // namespace strata
