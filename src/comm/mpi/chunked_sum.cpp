#include "chunked_sum.hpp"

#include <algorithm>

#include "comm/rank_sum.hpp"

namespace strata {
namespace {

std::span<std::byte> bytes_of(TensorView values, PartSpan part) {
  const std::int64_t element = dtype_bytes(values.dtype);
  return {static_cast<std::byte*>(values.data) + part.begin * element,
          static_cast<std::size_t>(part.count() * element)};
}

}  // namespace

ChunkedSum::ChunkedSum(MpiEndpoint& endpoint)
    : endpoint_(endpoint),
      rooms_(std::make_unique_for_overwrite<std::byte[]>(
          num_slots * as_index(endpoint.num_ranks()) * chunk_bytes)),
      sources_(as_index(endpoint.num_ranks())) {}

void ChunkedSum::run(TensorView values, std::span<const PartSpan> parts, std::byte* result) {
  values_ = values;
  parts_ = parts;
  result_ = result;
  std::int64_t longest = 0;
  for (const PartSpan& part : parts) longest = std::max(longest, part.count());
  const auto chunk_elements = static_cast<std::int64_t>(chunk_bytes) / dtype_bytes(values.dtype);
  const std::int64_t num_chunks = (longest + chunk_elements - 1) / chunk_elements;
  const auto ahead = static_cast<std::int64_t>(num_slots) - 1;
  for (std::int64_t chunk = 0; chunk < num_chunks + ahead; ++chunk) {
    if (chunk < num_chunks) begin(chunk);
    if (chunk >= ahead) end(chunk - ahead);
  }
}

// The others' parts are cut as they cut their own, from its beginning; a short one has empty ends.
PartSpan ChunkedSum::chunk_of(int rank, std::int64_t chunk) const {
  const PartSpan part = parts_[as_index(rank)];
  const auto elements = static_cast<std::int64_t>(chunk_bytes) / dtype_bytes(values_.dtype);
  const std::int64_t begin = std::min(part.begin + chunk * elements, part.end);
  return {begin, std::min(begin + elements, part.end)};
}

void ChunkedSum::begin(std::int64_t chunk) {
  const int rank = endpoint_.rank(), num_ranks = endpoint_.num_ranks();
  const std::size_t own_bytes = bytes_of(values_, chunk_of(rank, chunk)).size();
  for (int step = 1; step < num_ranks; ++step) {
    const int from = (rank + num_ranks - step) % num_ranks, to = (rank + step) % num_ranks;
    endpoint_.receive(from, {room(chunk, from), own_bytes}, transfers(chunk));
    endpoint_.send(to, bytes_of(values_, chunk_of(to, chunk)), transfers(chunk));
  }
}

void ChunkedSum::end(std::int64_t chunk) {
  endpoint_.finish(transfers(chunk));
  const int rank = endpoint_.rank();
  const PartSpan own = chunk_of(rank, chunk);
  for (int from = 0; from < endpoint_.num_ranks(); ++from)
    sources_[as_index(from)] = from == rank ? bytes_of(values_, own).data() : room(chunk, from);
  const std::int64_t offset = own.begin - parts_[as_index(rank)].begin;
  sum_ranks(sources_, values_.dtype, own.count(), result_ + offset * dtype_bytes(values_.dtype));
}

std::byte* ChunkedSum::room(std::int64_t chunk, int from) {
  const std::size_t slot = static_cast<std::size_t>(chunk) % num_slots;
  return rooms_.get() + (slot * sources_.size() + as_index(from)) * chunk_bytes;
}

Transfers& ChunkedSum::transfers(std::int64_t chunk) {
  return transfers_[static_cast<std::size_t>(chunk) % num_slots];
}

}  // namespace strata
