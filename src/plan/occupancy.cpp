#include "plan/occupancy.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "plan/roles.hpp"

namespace strata {
namespace {

constexpr std::size_t index_of(MemoryClass of) { return static_cast<std::size_t>(of); }

// Bytes held over one step. The steady step repeats: a life that lasts past its end also stands at
// its beginning.
class Curve {
 public:
  explicit Curve(double step_seconds) : step_(step_seconds) {}

  void add_always(MemoryClass of, std::uint64_t bytes) { change(0, of, bytes, +1); }

  void add(MemoryClass of, std::uint64_t bytes, double begin, double end) {
    const double whole_steps = std::floor((end - begin) / step_);
    for (double i = 0; i < whole_steps; ++i) add_always(of, bytes);
    const double first = begin - std::floor(begin / step_) * step_;
    const double last = first + (end - begin) - whole_steps * step_;
    change(first, of, bytes, +1);
    if (last < step_) return change(last, of, bytes, -1);
    add_always(of, bytes);
    change(last - step_, of, bytes, -1);
  }

  // What ends at a moment makes room for what begins at it.
  std::vector<ClassBytes> bins(int num_bins) {
    std::ranges::stable_sort(changes_, [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.bytes < b.bytes;
    });
    std::vector<ClassBytes> bins;
    std::array<std::int64_t, num_memory_classes> now{};
    std::size_t next = 0;
    for (int bin = 0; bin < num_bins; ++bin) {
      ClassBytes most = snapshot(now);
      for (const double end = step_ * (bin + 1) / num_bins;
           next < changes_.size() && changes_[next].at < end;) {
        const double at = changes_[next].at;
        for (; next < changes_.size() && changes_[next].at == at; ++next)
          now[index_of(changes_[next].of)] += changes_[next].bytes;
        if (total_of(snapshot(now)) > total_of(most)) most = snapshot(now);
      }
      bins.push_back(most);
    }
    return bins;
  }

 private:
  struct Change {
    double at;
    MemoryClass of;
    std::int64_t bytes;
  };
  void change(double at, MemoryClass of, std::uint64_t bytes, int sign) {
    changes_.push_back({at, of, sign * static_cast<std::int64_t>(bytes)});
  }
  static ClassBytes snapshot(const std::array<std::int64_t, num_memory_classes>& now) {
    ClassBytes bytes{};
    std::ranges::transform(now, bytes.begin(), [](std::int64_t b) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, b));
    });
    return bytes;
  }

  double step_;
  std::vector<Change> changes_;
};

// One piece of memory that holds one thing at a time: a slot, or the home of a tile.
struct Cell {
  std::uint64_t offset = 0, bytes = 0;
  // What it holds.
  TileRef what = {};
  bool is_held = false, was_read = false;
  double begin = 0, end = 0;
};

class Occupancy {
 public:
  Occupancy(const Program& program, const Plan& plan, const Simulation& simulation, Tier tier)
      : program_(program), simulation_(simulation), tier_(tier), curve_(simulation.step_seconds) {
    for (const SlotPool& pool : plan.pools) add_slots(pool);
    for (const Shard& shard : program.shards)
      for (const Region& home : plan.homes[shard.id.index()]) add_home(shard, home);
    if (tier == Tier::host)
      curve_.add_always(MemoryClass::other, plan.transfer.bytes + plan.save_buffers.bytes);
  }

  std::vector<ClassBytes> over(const Schedule& schedule, int num_bins) {
    for (const Op& op : schedule.ops)
      for (const Operand& operand : op.operands)
        if (operand.region.tier == tier_) touch(op, operand);
    for (auto& [offset, cell] : cells_) release(cell);
    return curve_.bins(num_bins);
  }

 private:
  void add_slots(const SlotPool& pool) {
    if (pool.tier != tier_) return;
    for (int slot = 0; slot < pool.num_slots; ++slot) {
      const std::uint64_t offset = pool.offset + pool.slot_bytes * static_cast<std::uint64_t>(slot);
      cells_[offset] = {.offset = offset, .bytes = pool.slot_bytes};
    }
  }

  void add_home(const Shard& shard, const Region& home) {
    if (home.tier != tier_) return;
    if (outlives_steps(shard.role)) {
      curve_.add_always(memory_class_of(program_, {shard.id}), home.bytes);
      persistent_[home.offset] = home.end();
    } else {
      cells_[home.offset] = {.offset = home.offset, .bytes = home.bytes};
    }
  }

  void touch(const Op& op, const Operand& operand) {
    if (lies_in_persistent(operand.region)) return;
    const OpTime& time = simulation_.ops[op.id.index()];
    if (operand.what.content == Content::scratch)
      return curve_.add(MemoryClass::scratch, operand.region.bytes, time.start, time.end);
    Cell& cell = cell_at(operand.region);
    const TileRef what{operand.what.shard, -1, operand.what.content};
    const bool writes = operand.access == Access::produce || operand.access == Access::accumulate;
    if (writes && (!cell.is_held || cell.was_read || !(cell.what == what))) hold(cell, what, time);
    if (!cell.is_held) return;  // Left by the step before, which stands for it.
    cell.was_read |= operand.access == Access::read;
    cell.begin = std::min(cell.begin, time.start);
    cell.end = std::max(cell.end, time.end);
  }

  void hold(Cell& cell, const TileRef& what, const OpTime& time) {
    release(cell);
    cell.what = what;
    cell.is_held = true;
    cell.was_read = false;
    cell.begin = time.start;
    cell.end = time.end;
  }

  void release(Cell& cell) {
    if (cell.is_held)
      curve_.add(memory_class_of(program_, cell.what), cell.bytes, cell.begin, cell.end);
    cell.is_held = false;
  }

  bool lies_in_persistent(const Region& region) const {
    const auto after = persistent_.upper_bound(region.offset);
    return after != persistent_.begin() && region.offset < std::prev(after)->second;
  }

  // Memory that is neither slot nor home (small results) is a cell as it is touched.
  Cell& cell_at(const Region& region) {
    const auto after = cells_.upper_bound(region.offset);
    if (after != cells_.begin()) {
      Cell& before = std::prev(after)->second;
      if (region.offset < before.offset + before.bytes) return before;
    }
    return cells_.emplace(region.offset, Cell{.offset = region.offset, .bytes = region.bytes})
        .first->second;
  }

  const Program& program_;
  const Simulation& simulation_;
  Tier tier_;
  Curve curve_;
  std::map<std::uint64_t, Cell> cells_;                // by offset
  std::map<std::uint64_t, std::uint64_t> persistent_;  // [offset, end)
};

}  // namespace

std::string_view memory_class_name(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::weights:
      return "weights";
    case MemoryClass::master:
      return "master";
    case MemoryClass::moments:
      return "moments";
    case MemoryClass::gradients:
      return "gradients";
    case MemoryClass::activations:
      return "activations";
    case MemoryClass::scratch:
      return "scratch";
    case MemoryClass::other:
      return "other";
  }
  return "?";
}

MemoryClass memory_class_of(const Program& program, const TileRef& what) {
  if (what.content == Content::scratch) return MemoryClass::scratch;
  if (what.content == Content::contribution || what.content == Content::rank_contribution)
    return MemoryClass::gradients;
  if (what.content != Content::value || !what.shard.valid()) return MemoryClass::other;
  switch (program.shard(what.shard).role) {
    case Role::weight:
      return MemoryClass::weights;
    case Role::gradient:
      return MemoryClass::gradients;
    case Role::master:
      return MemoryClass::master;
    case Role::moment1:
    case Role::moment2:
      return MemoryClass::moments;
    case Role::activation:
    case Role::activation_gradient:
    case Role::saved:
      return MemoryClass::activations;
    default:
      return MemoryClass::other;
  }
}

std::uint64_t total_of(const ClassBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

std::vector<ClassBytes> occupancy(const Program& program, const Plan& plan,
                                  const Schedule& schedule, const Simulation& simulation, Tier tier,
                                  int num_bins) {
  return Occupancy(program, plan, simulation, tier).over(schedule, num_bins);
}

}  // namespace strata
