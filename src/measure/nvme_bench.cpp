#include "strata/measure/nvme_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bench_session.hpp"
#include "block_sweep.hpp"
#include "fio_rival.hpp"
#include "machine_text.hpp"
#include "page_backing.hpp"
#include "seeded_file.hpp"
#include "sustained_load.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

constexpr std::uint64_t file_alignment = 64 * KiB;
constexpr std::uint64_t block_alignment = 4 * KiB;
constexpr double assumed_bytes_per_s = 1.5e9;  // for the progress of whole files, nothing else

void check_option(bool holds, const std::string& complaint) {
  if (!holds) throw ConfigError("bench nvme: " + complaint);
}

void check_bench_options(const NvmeBenchOptions& options) {
  check_option(!options.paths.empty(), "no path; name a directory on each drive to be measured");
  check_option(!options.patterns.empty(), "no pattern; ask for read, write or mixed");
  check_option(
      options.repeats > 0 && options.depth > 0,
      fmt::format("repeats ({}) and depth ({}) must be 1 or more", options.repeats, options.depth));
  check_option(options.duration_s > 0 && options.sustained_s >= 0,
               "a duration must be a positive number of seconds");
  check_option(options.block_bytes > 0 && options.block_bytes % block_alignment == 0,
               fmt::format("a block of {} bytes is no multiple of 4096", options.block_bytes));
  check_option(options.file_bytes >= std::max(options.block_bytes, file_alignment),
               fmt::format("files of {} hold no block of {}", format_bytes(options.file_bytes),
                           format_bytes(options.block_bytes)));
  const std::uint64_t needed = options.block_bytes * options.paths.size();
  check_option(options.buffer_bytes >= needed,
               fmt::format("buffers of {} hold no block for each path: {} are needed",
                           format_bytes(options.buffer_bytes), format_bytes(needed)));
}

// The same wish, with file sizes that O_DIRECT takes.
NvmeBenchOptions checked(NvmeBenchOptions options) {
  check_bench_options(options);
  options.file_bytes = options.file_bytes / file_alignment * file_alignment;
  return options;
}

std::uint64_t num_files(const NvmeBenchOptions& options) {
  const bool mixed = asks_for(options, NvmePattern::mixed);
  return (mixed || asks_for(options, NvmePattern::read) ? 1u : 0u) +
         (mixed || asks_for(options, NvmePattern::write) ? 1u : 0u);
}

// Beside these, one that comes and goes.
std::uint64_t num_new_files(const NvmeBenchOptions& options) {
  return asks_for(options, NvmePattern::write) ? 1 : 0;
}

std::uint64_t site_bytes(const NvmeBenchOptions& options) {
  return (num_files(options) + num_new_files(options)) * options.file_bytes;
}

double whole_file_s(const NvmeBenchOptions& options) {
  return static_cast<double>(options.file_bytes) / assumed_bytes_per_s;
}

double planned_seconds(const BenchSession& session) {
  const NvmeBenchOptions& options = session.options;
  const auto num_targets = static_cast<double>(bench_targets(options.paths).size());
  const bool fio = options.fio == CompareFio::yes;
  const double sample_s = options.duration_s + (fio ? FioRival::sample_seconds(session) : 0);
  const double samples_s = options.repeats * sample_s + latency_sample_s(options.duration_s);
  // Written, read back, and what was written over once more.
  const auto files = static_cast<double>(num_files(options) * options.paths.size());
  double total = num_targets * static_cast<double>(options.patterns.size()) * samples_s;
  total += num_targets * static_cast<double>(num_new_files(options)) * options.repeats *
           options.duration_s;
  total += 3 * files * whole_file_s(options) + options.sustained_s;
  if (options.sweep == Sweep::on) total += block_sweep_seconds(session);
  return fio ? total + FioRival::choice_seconds(session) : total;
}

// Buffers as a run has them: page-aligned, pinnable, on 2 MiB pages.
class BenchMemory {
 public:
  explicit BenchMemory(std::uint64_t bytes)
      : device_(make_host_device({})), slab_(device_->allocate_pinned(bytes)) {
    // Touched, and such that drives which compress gain nothing.
    fill_seeded(span(), static_cast<std::uint64_t>(now_ns()), 0);
  }
  std::span<std::byte> span() const { return {slab_.data(), slab_.bytes()}; }

 private:
  std::unique_ptr<Device> device_;
  Slab slab_;
};

class NvmeBench {
 public:
  explicit NvmeBench(const NvmeBenchOptions& options);
  NvmeReport run();

 private:
  void describe();
  void look_for_fio();
  void write_file(FileId file, std::uint64_t seed, const std::string& name);
  void read_file(FileId file, std::uint64_t seed, const std::string& name);
  void write_files();
  void verify_files();
  void sweep();
  void measure_all();
  void measure(const BenchTarget& target, NvmePattern pattern);
  void sample_ours(const BenchTarget& target, NvmeResult& result);
  void sample_fio(const BenchTarget& target, NvmeResult& result);
  void sample_new_files(const BenchTarget& target, NvmeResult& result);
  void sample_latency(const BenchTarget& target, NvmeResult& result);
  void begin(const BenchTarget& target, NvmePattern pattern, std::string_view who, double step_s);
  std::uint64_t source_seed(std::size_t site) const { return seed_ + 2 * site; }
  std::uint64_t target_seed(std::size_t site) const { return seed_ + 2 * site + 1; }
  void use_rig(std::uint64_t block_bytes, int depth);

  const NvmeBenchOptions options_;
  const std::vector<BenchSite> sites_;
  const BenchMemory memory_;
  BenchProgress progress_;
  const BenchSession session_;
  std::unique_ptr<BenchRig> rig_;
  std::optional<FioRival> fio_;
  const std::uint64_t seed_ = static_cast<std::uint64_t>(now_ns());
  NvmeReport report_;
};

NvmeBench::NvmeBench(const NvmeBenchOptions& options)
    : options_(checked(options)),
      sites_(make_bench_sites(options_.paths, site_bytes(options_))),
      memory_(options_.buffer_bytes),
      progress_(options_.watch),
      session_{options_, options_.file_bytes, sites_, memory_.span(), progress_} {
  progress_.plan(planned_seconds(session_));
}

NvmeReport NvmeBench::run() {
  describe();
  use_rig(options_.block_bytes, options_.depth);
  write_files();
  look_for_fio();
  sweep();
  measure_all();
  if (options_.sustained_s > 0) report_.sustained = run_sustained_load(session_, *rig_);
  verify_files();
  return std::move(report_);
}

void NvmeBench::describe() {
  report_.started_at = utc_now_text();
  report_.kernel = kernel_text();
  report_.cpu = processor_text();
  report_.buffer_page_bytes = page_bytes_behind(memory_.span());
  report_.file_bytes = options_.file_bytes;
  report_.repeats = options_.repeats;
  for (const std::string& path : options_.paths) report_.drives.push_back(read_drive_facts(path));
}

void NvmeBench::use_rig(std::uint64_t block_bytes, int depth) {
  rig_.reset();
  rig_ = session_.make_rig(block_bytes, depth);
  report_.engine = rig_->engine().describe();
  report_.best_block_bytes = block_bytes;
  report_.best_depth = depth;
}

void NvmeBench::write_file(FileId file, std::uint64_t seed, const std::string& name) {
  progress_.begin("writing " + name, whole_file_s(options_));
  write_seeded(
      rig_->engine(), {file, options_.file_bytes, seed}, memory_.span(), [&](std::uint64_t bytes) {
        progress_.at_share(static_cast<double>(bytes) / static_cast<double>(options_.file_bytes));
      });
  rig_->engine().sync(file);
}

void NvmeBench::read_file(FileId file, std::uint64_t seed, const std::string& name) {
  progress_.begin("verifying " + name, whole_file_s(options_));
  verify_seeded(
      rig_->engine(), {file, options_.file_bytes, seed}, memory_.span(), [&](std::uint64_t bytes) {
        progress_.at_share(static_cast<double>(bytes) / static_cast<double>(options_.file_bytes));
      });
  report_.verified_bytes += options_.file_bytes;
}

// Blocks that were never written read as zeros without the drive, and first writes allocate.
void NvmeBench::write_files() {
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    const auto prepare = [&](FileId file, std::uint64_t seed) {
      rig_->engine().preallocate(file, options_.file_bytes);
      write_file(file, seed, "the files on " + sites_[site].path);
    };
    if (session_.reads_source()) prepare(rig_->source(site), source_seed(site));
    if (session_.writes_target()) prepare(rig_->target(site), target_seed(site));
  }
}

// What was read from all along is still what was written at the start; what was written over is
// written once more.
void NvmeBench::verify_files() {
  for (std::size_t site = 0; site < sites_.size(); ++site) {
    const std::string name = "the files on " + sites_[site].path;
    if (session_.reads_source()) read_file(rig_->source(site), source_seed(site), name);
    if (!session_.writes_target()) continue;
    write_file(rig_->target(site), target_seed(site), name);
    read_file(rig_->target(site), target_seed(site), name);
  }
}

void NvmeBench::look_for_fio() {
  if (options_.fio == CompareFio::no) return;
  if (find_fio() == FioPresence::missing) {
    report_.notes.emplace_back("fio is not installed: nothing to compare with (package fio)");
    return;
  }
  fio_.emplace(session_);
  fio_->choose();
}

void NvmeBench::sweep() {
  if (options_.sweep == Sweep::off) return;
  report_.sweep = run_block_sweep(session_);
  const BlockChoice best = choose_block(report_.sweep);
  use_rig(best.block_bytes, best.depth);
}

void NvmeBench::measure_all() {
  for (const BenchTarget& target : bench_targets(options_.paths)) {
    for (const NvmePattern pattern : options_.patterns) measure(target, pattern);
  }
}

void NvmeBench::measure(const BenchTarget& target, NvmePattern pattern) {
  NvmeResult result;
  result.pattern = pattern;
  result.target = target.name;
  result.block_bytes = rig_->options().block_bytes;
  for (int repeat = 0; repeat < options_.repeats; ++repeat) {
    // Who comes first changes: what one leaves behind in a drive's cache, each pays for in turn.
    if (repeat % 2 == 1) sample_fio(target, result);
    sample_ours(target, result);
    if (repeat % 2 == 0) sample_fio(target, result);
    sample_new_files(target, result);
  }
  sample_latency(target, result);
  report_.results.push_back(std::move(result));
}

void NvmeBench::begin(const BenchTarget& target, NvmePattern pattern, std::string_view who,
                      double step_s) {
  progress_.begin(fmt::format("{} {}, {}", nvme_pattern_name(pattern), target.name, who), step_s);
}

void NvmeBench::sample_ours(const BenchTarget& target, NvmeResult& result) {
  begin(target, result.pattern, "rate", options_.duration_s);
  const auto measured = rig_->measure(target.sites, result.pattern, BlocksAhead::queued,
                                      options_.duration_s, session_.tick());
  result.depth = measured.depth;
  result.bytes_per_s.values.push_back(measured.sample.bytes_per_s());
  result.cpu_seconds_per_gb.values.push_back(measured.sample.cpu_seconds_per_gb());
  if (result.pattern == NvmePattern::read) return;
  const double sync_s = rig_->sync_targets(target.sites);
  if (result.pattern == NvmePattern::write && target.sites.size() == 1)
    report_.sync_seconds.values.push_back(sync_s);
}

void NvmeBench::sample_fio(const BenchTarget& target, NvmeResult& result) {
  if (!fio_) return;
  begin(target, result.pattern, "fio", FioRival::sample_seconds(session_));
  const auto sample = fio_->sample(target, result.pattern);
  if (!sample) {
    report_.notes.push_back(
        fmt::format("fio failed at {} on {}", nvme_pattern_name(result.pattern), target.name));
    return;
  }
  if (!result.fio_bytes_per_s) result.fio_bytes_per_s.emplace();
  if (!result.fio_cpu_seconds_per_gb) result.fio_cpu_seconds_per_gb.emplace();
  result.fio_bytes_per_s->values.push_back(sample->bytes_per_s);
  result.fio_cpu_seconds_per_gb->values.push_back(sample->cpu_seconds_per_gb);
  result.fio_job = fio_->job_text(target, result.pattern);
  if (result.pattern != NvmePattern::read) rig_->sync_targets(target.sites);
}

void NvmeBench::sample_new_files(const BenchTarget& target, NvmeResult& result) {
  if (result.pattern != NvmePattern::write) return;
  begin(target, result.pattern, "new files", options_.duration_s);
  const auto sample = rig_->write_new_files(target.sites, options_.duration_s, session_.tick());
  if (!result.new_file_bytes_per_s) result.new_file_bytes_per_s.emplace();
  result.new_file_bytes_per_s->values.push_back(sample.bytes_per_s());
}

void NvmeBench::sample_latency(const BenchTarget& target, NvmeResult& result) {
  const double duration_s = latency_sample_s(options_.duration_s);
  begin(target, result.pattern, "latency", duration_s);
  auto measured =
      rig_->measure(target.sites, result.pattern, BlocksAhead::none, duration_s, session_.tick());
  result.latency = latency_of(std::move(measured.sample.latencies_us));
}

}  // namespace

NvmeReport bench_nvme(const NvmeBenchOptions& options) { return NvmeBench(options).run(); }

}  // namespace strata
