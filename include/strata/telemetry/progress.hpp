#pragma once
// Progress of a run: one line per logged step on the terminal and one JSON object per step in
// metrics.jsonl. Thread contract: one thread.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/telemetry/model_work.hpp"

namespace strata {

// To drives by all ranks, since a run began: as its plan has it, and what it loaded; and its
// checkpoints. Taken up again by a run that goes on in the same output folder.
struct WrittenBytes {
  std::uint64_t nvme = 0, checkpoints = 0;
  bool operator==(const WrittenBytes&) const = default;
};

struct StepReport {
  std::int64_t step = 0, total_steps = 0;  // step is 1-based
  double epoch = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double seconds = 0;       // wall time of the step
  std::int64_t tokens = 0;  // trained tokens of the step, all ranks
  bool applied = true;      // false: skipped, non-finite gradients
  std::vector<std::pair<std::string, double>>
      waits;  // exposed seconds by cause, {"nvme", 0.04}; small ones left out
  // The step that waits, busy and bytes are of: the last complete one; 0: none yet.
  std::int64_t timing_step = 0;
  std::vector<std::pair<std::string, double>>
      busy;  // seconds each lane worked in the last complete step; metrics.jsonl only
  std::uint64_t nvme_bytes_read = 0, nvme_bytes_written = 0;
  std::uint64_t comm_bytes = 0;  // exchanged with other ranks
  // Of the step of timing_step, by resource, for metrics.jsonl: the share of the step in which it
  // had something to do, bytes per second over a link while it had, and with a prediction the time
  // that the step needs of it at its full rate over the time the step took.
  std::vector<std::pair<std::string, double>> used = {}, rates = {}, roofline = {};
  double of_bound = 0;  // the largest of `roofline`, shown on the terminal; 0: not known
  ModelWork model = {};
  WrittenBytes written = {};
};

struct SaveReport {
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;  // on disk
  double seconds = 0;       // from its beginning until it stood
  // Of one that was written while training went on: the steps meanwhile, and what they took more
  // than those before, the first of them, which handed the state over, and all together. 0: none,
  // or not known.
  std::int64_t steps_meanwhile = 0;
  double carrier_extra_seconds = 0, extra_seconds = 0;
  std::uint64_t bytes_total = 0;  // of all checkpoints, as WrittenBytes; metrics.jsonl only
};

// "step 12/200 | loss 1.834 | norm 0.92 | lr 9.8e-06 | 812 tok/s | 385 TFLOP/s, MFU 39% | 2.31 s
// (wait: nvme 0.04 update 0.11) | eta 7m12s"; with a prediction "2.31 s, 91% of the bound (wait:
// ...". No MFU of a device whose peak is not known.
std::string format_step(const StepReport& report, double eta_seconds);
// "saved out/checkpoint-4 at step 4: 1.2 GiB in 3.41 s (360 MiB/s), verified", and what it took
// training: "; step 5 took 0.10 s more, the 3 steps meanwhile 0.12 s".
std::string format_saved(const SaveReport& report);
// "written  1.23 TB to NVMe, 45.6 GB of checkpoints"; empty: nothing was.
std::string format_written(const WrittenBytes& written);
std::string format_duration(double seconds);  // "42s", "7m12s", "11h41m"

enum class Style : std::uint8_t { plain, color };
// color only on a terminal, and not when NO_COLOR is set (to anything) or TERM is "dumb".
Style terminal_style(std::FILE* stream);

class Progress {
 public:
  // Creates or appends to output_dir/metrics.jsonl; flushes each line. A run that goes on from step
  // `resumed_step` takes away the lines of later steps, which it makes anew. Throws SystemError.
  Progress(const std::filesystem::path& output_dir, Style style, std::FILE* terminal,
           std::int64_t resumed_step = -1);
  ~Progress();
  // By the run that this one goes on from, as its metrics tell.
  WrittenBytes written_before() const;
  // Every step goes to metrics.jsonl; `show` prints the line too.
  void step(const StepReport& report, bool show);
  void evaluation(std::int64_t step, double loss, std::int64_t tokens);
  void saved(const SaveReport& report);
  // "!": printed at once, in every style; also a metrics.jsonl object with "event".
  void event(const std::string& name, const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata
