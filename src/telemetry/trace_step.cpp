#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "strata/core/error.hpp"
#include "strata/telemetry/resource_use.hpp"
#include "strata/telemetry/trace.hpp"
#include "telemetry/first_use.hpp"
#include "telemetry/link_rate.hpp"
#include "telemetry/op_label.hpp"
#include "telemetry/trace_time.hpp"

namespace strata {
namespace {

// Where an op stands in the trace.
struct Placed {
  int row = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  bool takes_time() const { return end_ns > start_ns; }
};

// A lane's rows; what was put on one of them is over before the next comes.
class LaneRows {
 public:
  // The first row that is free; rows made before are numbered alike in every step.
  int take(std::int64_t start_ns, std::int64_t end_ns) {
    const auto free =
        std::ranges::find_if(ends_, [&](std::int64_t end) { return end <= start_ns; });
    const auto row = static_cast<std::size_t>(free - ends_.begin());
    if (free == ends_.end()) ends_.push_back(0);
    ends_[row] = end_ns;
    return static_cast<int>(row);
  }
  std::size_t size() const { return ends_.size(); }

 private:
  std::vector<std::int64_t> ends_;
};

constexpr int steps_row = 10;         // clear of the process's number: viewers call that row "main"
constexpr int lane_stride = 1000000;  // of the sort order: a row per transfer fits between lanes

double to_seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

struct StepTracer::Impl {
  Impl(TraceFile& file, int number, const Program& of, const Plan& with, const Schedule& ops)
      : trace(file),
        process(number),
        program(of),
        plan(with),
        schedule(&ops),
        uses(first_uses(ops)) {
    trace.name_row(process, steps_row, "step", 0);
  }

  void place(std::span<const OpTime> times, double at_s);
  void place_lane(std::size_t lane);
  int row_of(std::size_t lane, const Placed& op);
  void write_step(std::int64_t number);
  void write_spans(std::int64_t number);
  void write_flows();
  void add_rates();
  TraceFile::Span span_of(OpId op) const {
    const Placed& at = placed[op.index()];
    return {process, at.row, {}, {}, to_seconds(at.start_ns), to_seconds(at.end_ns - at.start_ns)};
  }

  TraceFile& trace;
  const int process;
  const Program& program;
  const Plan& plan;
  const Schedule* schedule;
  std::vector<FirstUse> uses;
  std::array<LaneRows, num_lanes> rows;
  std::array<std::vector<int>, num_lanes> row_numbers;
  int last_row = steps_row;
  std::vector<Placed> placed;  // the step at hand, by OpId
  PerResource<LinkRate> rates;
  std::uint64_t flows = 0;
};

void StepTracer::Impl::place(std::span<const OpTime> times, double at_s) {
  ensure(times.size() == schedule->ops.size());
  placed.assign(times.size(), {});
  for (std::size_t i = 0; i < times.size(); ++i) {
    placed[i].start_ns = nanoseconds(times[i].start + at_s);
    placed[i].end_ns = std::max(placed[i].start_ns, nanoseconds(times[i].end + at_s));
  }
  for (std::size_t lane = 0; lane < num_lanes; ++lane) place_lane(lane);
}

void StepTracer::Impl::place_lane(std::size_t lane) {
  std::vector<OpId> ops = schedule->lanes[lane];
  std::ranges::stable_sort(ops, {}, [&](OpId op) { return placed[op.index()].start_ns; });
  for (const OpId op : ops)
    if (placed[op.index()].takes_time()) placed[op.index()].row = row_of(lane, placed[op.index()]);
}

int StepTracer::Impl::row_of(std::size_t lane, const Placed& op) {
  const int row = rows[lane].take(op.start_ns, op.end_ns);
  std::vector<int>& numbers = row_numbers[lane];
  if (static_cast<std::size_t>(row) == numbers.size()) {
    numbers.push_back(++last_row);
    const std::string_view name = lane_name(static_cast<Lane>(lane));
    trace.name_row(process, last_row,
                   row == 0 ? std::string(name) : fmt::format("{} ({})", name, row + 1),
                   (static_cast<int>(lane) + 1) * lane_stride + row);
  }
  return numbers[static_cast<std::size_t>(row)];
}

void StepTracer::Impl::write_step(std::int64_t number) {
  const auto& ops = schedule->lanes[static_cast<std::size_t>(Lane::compute)];
  if (ops.empty()) return;
  const std::int64_t begin = placed[ops.front().index()].start_ns;
  const std::int64_t end = placed[ops.back().index()].end_ns;
  const std::string name = fmt::format("step {}", number);
  trace.span({process, steps_row, name, "step", to_seconds(begin), to_seconds(end - begin)});
}

void StepTracer::Impl::write_spans(std::int64_t number) {
  for (const Op& op : schedule->ops) {
    if (!placed[op.id.index()].takes_time()) continue;
    TraceFile::Span span = span_of(op.id);
    const std::string label = op_label(program, op);
    span.name = label;
    span.category = op_kind_name(op.kind);
    span.arguments = {{"step", std::to_string(number)}, {"op", std::to_string(op.id.value)}};
    if (op.segment.valid()) span.arguments.emplace_back("for", program.segment(op.segment).name);
    if (const auto bytes = link_bytes(op, plan.limits.io_alignment); bytes > 0)
      span.arguments.emplace_back("bytes", std::to_string(bytes));
    trace.span(span);
  }
}

void StepTracer::Impl::write_flows() {
  for (const FirstUse& first : uses)
    if (placed[first.fetch.index()].takes_time() && placed[first.use.index()].takes_time())
      trace.flow((static_cast<std::uint64_t>(process) << 40) + ++flows, span_of(first.fetch),
                 span_of(first.use));
}

void StepTracer::Impl::add_rates() {
  for (const Op& op : schedule->ops) {
    const Placed& at = placed[op.id.index()];
    if (const auto bytes = link_bytes(op, plan.limits.io_alignment); bytes > 0)
      rates[static_cast<std::size_t>(resource_of_lane(op.lane))].add(at.start_ns, at.end_ns, bytes);
  }
}

StepTracer::StepTracer(TraceFile& trace, int process, const Program& program, const Plan& plan,
                       const Schedule& schedule)
    : impl_(std::make_unique<Impl>(trace, process, program, plan, schedule)) {}

StepTracer::~StepTracer() = default;

void StepTracer::step(std::span<const OpTime> times, double at_s, std::int64_t number) {
  impl_->place(times, at_s);
  impl_->write_step(number);
  impl_->write_spans(number);
  impl_->write_flows();
  impl_->add_rates();
  impl_->trace.flush();
}

void StepTracer::step(const Schedule& schedule, std::span<const OpTime> times, double at_s,
                      std::int64_t number) {
  if (impl_->schedule != &schedule) {
    impl_->schedule = &schedule;
    impl_->uses = first_uses(schedule);
  }
  step(times, at_s, number);
}

void StepTracer::finish() {
  for (int i = 0; i < num_resources; ++i) {
    if (!is_link(static_cast<Resource>(i))) continue;
    const std::string name(resource_key(static_cast<Resource>(i)));
    for (const LinkRate::Point& point : impl_->rates[static_cast<std::size_t>(i)].points())
      impl_->trace.counter(impl_->process, name, "bytes/s", to_seconds(point.at_ns),
                           point.bytes_per_s);
  }
  impl_->rates = {};  // Once.
  impl_->trace.flush();
}

void trace_steps(TraceFile& trace, int process, const Program& program, const Plan& plan,
                 const Schedule& schedule, std::span<const OpTime> times, double at_s,
                 double step_s) {
  double earliest = 0;
  for (const OpTime& time : times) earliest = std::min(earliest, time.start + at_s);
  StepTracer tracer(trace, process, program, plan, schedule);
  for (const int step : {0, 1}) tracer.step(times, at_s - earliest + step * step_s, step + 1);
  tracer.finish();
}

}  // namespace strata
