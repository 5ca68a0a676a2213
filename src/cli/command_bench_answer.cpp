#include "cli/command_bench_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "cli/config_value.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {
namespace {

constexpr double gb = 1e9, tb = 1e12;
constexpr double as_fast_as = 0.98;  // what is as good as the best
constexpr double usual_bytes_per_parameter = 12;

struct Rating {
  double terabytes;
  const char* of;
};
constexpr std::array assumed_ratings = {
    Rating{600, "a 1 TB consumer drive"}, Rating{1200, "a 2 TB consumer drive"},
    Rating{14000, "a 7.68 TB drive, 1 write a day for 5 years"}};

// Bytes per second; 0: not measured.
struct Rates {
  double read = 0, write = 0, mixed = 0;
  double new_files = 0;  // written into files that were not there
};

Rates rates_of(const NvmeReport& report, std::string_view target) {
  Rates rates;
  for (const NvmeResult& result : report.results) {
    if (result.target != target) continue;
    double& rate = result.pattern == NvmePattern::read    ? rates.read
                   : result.pattern == NvmePattern::write ? rates.write
                                                          : rates.mixed;
    rate = result.bytes_per_s.median();
    if (result.new_file_bytes_per_s) rates.new_files = result.new_file_bytes_per_s->median();
  }
  return rates;
}

// Bytes read plus written per second, as much of the one as of the other.
double both_ways(const Rates& rates) {
  if (rates.mixed > 0) return rates.mixed;
  if (rates.read > 0 && rates.write > 0) return 2 / (1 / rates.read + 1 / rates.write);
  return 0;
}

// What goes both ways at the mixed rate, and the rest at its own.
std::optional<double> seconds_for(const Rates& rates, std::uint64_t read, std::uint64_t written) {
  const double both = 2 * static_cast<double>(std::min(read, written));
  const double only_read = static_cast<double>(read - std::min(read, written));
  const double only_written = static_cast<double>(written - std::min(read, written));
  double seconds = 0;
  const auto add = [&](double bytes, double rate) {
    if (bytes > 0) seconds += rate > 0 ? bytes / rate : std::nan("");
  };
  add(both, both_ways(rates));
  add(only_read, rates.read);
  add(only_written, rates.write);
  return std::isnan(seconds) ? std::nullopt : std::optional(seconds);
}

bool has_all(const NvmeReport& report) { return report.drives.size() > 1; }

// Everything at once, or the one drive.
std::string whole_target(const NvmeReport& report) {
  if (has_all(report) || report.drives.empty()) return std::string(all_drives);
  return report.drives[0].path;
}

std::optional<double> longest(const std::vector<std::optional<double>>& seconds) {
  double longest = 0;
  for (const auto& value : seconds) {
    if (!value) return std::nullopt;
    longest = std::max(longest, *value);
  }
  return longest;
}

const SustainedResult* knee_of_all(const NvmeReport& report) {
  for (const SustainedResult& sustained : report.sustained)
    if (sustained.target == whole_target(report) && sustained.knee &&
        sustained.after_knee_bytes_per_s > 0)
      return &sustained;
  return nullptr;
}

std::string rates_line(const NvmeReport& report) {
  const Rates rates = rates_of(report, whole_target(report));
  const auto shown = [](double rate) { return rate > 0 ? three_digits(rate / gb) : "-"; };
  std::string text = fmt::format("NVMe     read {}, write {}, mixed {} GB/s{}\n", shown(rates.read),
                                 shown(rates.write), shown(rates.mixed),
                                 has_all(report) ? ", all drives together" : "");
  if (rates.new_files > 0)
    text += fmt::format("         {} GB/s into new files, as checkpoints are, until durable\n",
                        shown(rates.new_files));
  return text;
}

// Such paths share one drive's bandwidth: a second one gains nothing.
std::string note_of_shared_disk(const NvmeReport& report) {
  std::map<std::string, std::string> path_on;
  for (const DriveFacts& drive : report.drives) {
    if (drive.disk.empty()) continue;
    const auto [first, is_new] = path_on.emplace(drive.disk, drive.path);
    if (!is_new)
      return fmt::format("note     {} and {} are on one disk, {}: a run needs only one of them\n",
                         first->second, drive.path, drive.disk);
  }
  return "";
}

std::string format_settings(const NvmeReport& report, const std::string& io_engine) {
  std::vector<std::string> paths;
  // A config may be used from another folder.
  for (const DriveFacts& drive : report.drives)
    paths.push_back(std::filesystem::absolute(drive.path).lexically_normal().string());
  std::string text = "To paste into a run's config:\n\noffload:\n";
  text += fmt::format("  nvme_paths: {}\n", yaml_list(paths));
  if (const auto weights = nvme_weights(report); !weights.empty())
    text += fmt::format("  nvme_weights: {}  # measured, mixed\n", yaml_numbers(weights));
  return text +
         fmt::format("  io_engine: {}\n  io_queue_depth: {}\n", io_engine, run_queue_depth(report));
}

std::string format_step_time(const NvmeReport& report, const NvmeDemand& demand) {
  const double read = static_cast<double>(demand.traffic.read_bytes());
  const double written = static_cast<double>(demand.traffic.written_bytes());
  if (read == 0 && written == 0)
    return fmt::format("{} moves nothing from or to NVMe.\n", demand.whose);
  std::string text = fmt::format("{} reads {} GB from NVMe and writes {} GB to it.\n", demand.whose,
                                 three_digits(read / gb), three_digits(written / gb));
  const auto seconds = nvme_seconds(report, demand.traffic);
  if (!seconds) return text + "How long that takes was not measured: ask for --pattern mixed.\n";
  text += fmt::format("NVMe alone needs {} s per step for it; a step cannot be faster.\n",
                      three_digits(*seconds));
  if (const auto lasting = nvme_seconds_after_knee(report, demand.traffic))
    text += fmt::format("Once the fast cache of the drives is full: {} s per step.\n",
                        three_digits(*lasting));
  return text;
}

std::string grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", std::floor(number));
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// Paths on one disk wear that disk together.
double most_written(const NvmeReport& report, const NvmeTraffic& traffic) {
  std::map<std::string, double> written;
  double most = 0;
  for (std::size_t i = 0; i < traffic.drive_written_bytes.size() && i < report.drives.size(); ++i) {
    const DriveFacts& drive = report.drives[i];
    double& bytes = written[drive.disk.empty() ? drive.path : drive.disk];
    bytes += static_cast<double>(traffic.drive_written_bytes[i]);
    most = std::max(most, bytes);
  }
  return most;
}

std::string format_life(const NvmeReport& report, const NvmeDemand& demand,
                        const std::optional<double>& rating) {
  const double most = most_written(report, demand.traffic);
  if (most == 0) return "";
  const auto steps = [&](double terabytes) { return grouped(terabytes * tb / most); };
  const std::string head = fmt::format("At {} GB written per step{}", three_digits(most / gb),
                                       has_all(report) ? " to the busiest drive" : "");
  if (rating)
    return fmt::format("{}, its rating of {:g} TB written lasts {} steps.\n", head, *rating,
                       steps(*rating));
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"TB written", right}, {"steps", right}, {"an assumed rating, as of"}});
  for (const Rating& assumed : assumed_ratings)
    table.add_row({grouped(assumed.terabytes), steps(assumed.terabytes), assumed.of});
  return fmt::format("{}, a drive lasts (--drive-tbw: what yours is rated for):\n{}", head,
                     table.text());
}

}  // namespace

std::vector<double> nvme_weights(const NvmeReport& report) {
  std::vector<double> weights;
  if (report.drives.size() < 2) return weights;
  for (const DriveFacts& drive : report.drives) {
    const Rates rates = rates_of(report, drive.path);
    const double mixed = both_ways(rates);
    weights.push_back(mixed > 0 ? mixed : std::max(rates.read, rates.write));
  }
  const double highest = *std::ranges::max_element(weights);
  // Two digits: more are noise. A drive that gives next to nothing still counts as one.
  for (double& weight : weights)
    weight = highest > 0 ? std::max(0.01, std::round(100 * weight / highest) / 100) : 1;
  return weights;
}

// The fewest pieces in flight of those that are as fast as the best at the piece size of a run; of
// another block size, as many bytes in flight.
int run_queue_depth(const NvmeReport& report) {
  const std::uint64_t piece = IoOptions{}.chunk_bytes;
  std::vector<std::pair<int, double>> rates;  // by depth
  double best = 0;
  for (const NvmeResult& result : report.sweep) {
    if (result.block_bytes != piece || result.pattern != NvmePattern::mixed) continue;
    rates.emplace_back(result.depth, result.bytes_per_s.median());
    best = std::max(best, rates.back().second);
  }
  std::ranges::sort(rates);
  for (const auto& [depth, rate] : rates)
    if (rate >= as_fast_as * best) return depth;
  const std::uint64_t bytes =
      report.best_block_bytes * static_cast<std::uint64_t>(std::max(1, report.best_depth));
  return static_cast<int>(std::clamp<std::uint64_t>((bytes + piece - 1) / piece, 1, 4096));
}

std::optional<double> nvme_seconds(const NvmeReport& report, const NvmeTraffic& traffic) {
  std::vector<std::optional<double>> seconds;
  for (std::size_t i = 0; i < traffic.drive_read_bytes.size() && i < report.drives.size(); ++i)
    seconds.push_back(seconds_for(rates_of(report, report.drives[i].path),
                                  traffic.drive_read_bytes[i], traffic.drive_written_bytes[i]));
  // Drives may share a link that is narrower than they are together.
  if (has_all(report))
    seconds.push_back(
        seconds_for(rates_of(report, all_drives), traffic.read_bytes(), traffic.written_bytes()));
  return longest(seconds);
}

std::optional<double> nvme_seconds_after_knee(const NvmeReport& report,
                                              const NvmeTraffic& traffic) {
  const SustainedResult* knee = knee_of_all(report);
  const auto before = nvme_seconds(report, traffic);
  if (knee == nullptr || !before || knee->pattern == NvmePattern::read) return std::nullopt;
  const double written = static_cast<double>(traffic.written_bytes());
  const double both =
      2 * static_cast<double>(std::min(traffic.read_bytes(), traffic.written_bytes()));
  const double bytes = knee->pattern == NvmePattern::write ? written : both;
  return std::max(*before, bytes / knee->after_knee_bytes_per_s);
}

NvmeDemand demand_of_a_billion(const NvmeReport& report) {
  std::vector<double> weights = nvme_weights(report);
  if (weights.empty()) weights = {1};
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  NvmeDemand demand{
      "Per 1 billion parameters with the whole fp32 optimizer state on NVMe (12 bytes read and "
      "written\nper parameter), one optimizer step",
      {}};
  for (const double weight : weights) {
    const auto bytes =
        static_cast<std::uint64_t>(std::llround(1e9 * usual_bytes_per_parameter * weight / total));
    demand.traffic.drive_read_bytes.push_back(bytes);
    demand.traffic.drive_written_bytes.push_back(bytes);
  }
  return demand;
}

std::string format_answer(const NvmeReport& report, const NvmeDemand& demand,
                          const AnswerOptions& options) {
  return rates_line(report) + note_of_shared_disk(report) + "\n" +
         format_step_time(report, demand) + format_life(report, demand, options.drive_tbw) + "\n" +
         format_settings(report, options.io_engine);
}

}  // namespace strata
