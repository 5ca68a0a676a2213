#include "io/store/drive_probe.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "io/store/aligned_memory.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::uint64_t probe_bytes_max = 1 * MiB;

void fill_pattern(std::span<std::byte> memory) {
  PhiloxStream random(static_cast<std::uint64_t>(::getpid()), 0);
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    const std::uint64_t word = random.next_u64();
    std::memcpy(memory.data() + at, &word, 8);
  }
}

}  // namespace

void probe_drive(IoEngine& engine, FileId file, std::uint64_t alignment, std::uint64_t bytes) {
  bytes = std::min(bytes, probe_bytes_max) / alignment * alignment;
  if (bytes == 0) return;
  const AlignedMemory written(alignment, bytes, "the drive probe");
  const AlignedMemory read(alignment, bytes, "the drive probe");
  fill_pattern(written.span());
  std::ranges::fill(read.span(), std::byte{0});
  transfer(engine,
           {.op = IoOp::write, .file = file, .data = written.span().data(), .bytes = bytes});
  transfer(engine, {.op = IoOp::read, .file = file, .data = read.span().data(), .bytes = bytes});
  if (std::ranges::equal(written.span(), read.span())) return;
  throw Error(fmt::format(
      "{} does not give back what was written to it: the first {} differ; do not use this drive",
      engine.info(file).path, format_bytes(bytes)));
}

}  // namespace strata
