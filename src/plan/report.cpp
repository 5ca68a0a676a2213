// The Plan as a table for people and as JSON for tools.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <concepts>
#include <nlohmann/json.hpp>

#include "plan/plan_json.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/text_table.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

using TierBytes = std::array<std::uint64_t, num_tiers>;

std::uint64_t sum(const TierBytes& bytes) { return bytes[0] + bytes[1] + bytes[2]; }

std::string plain_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

std::string share_cell(std::uint64_t bytes, std::uint64_t total) {
  if (bytes == 0) return "-";
  return fmt::format("{} {:3.0f}%", format_bytes(bytes),
                     100.0 * static_cast<double>(bytes) / static_cast<double>(total));
}

std::string limit_cell(std::uint64_t limit) {
  return limit == ~std::uint64_t{0} ? "no limit" : format_bytes(limit);
}

void add_home(TextTable& table, const Usage& usage) {
  const std::uint64_t total = sum(usage.bytes);
  table.add_row({"  " + usage.name, format_bytes(total), share_cell(usage.bytes[0], total),
                 share_cell(usage.bytes[1], total), share_cell(usage.bytes[2], total)});
}

void add_plain(TextTable& table, const std::string& name, const std::string& amount,
               const TierBytes& bytes) {
  table.add_row({name, amount, plain_cell(bytes[0]), plain_cell(bytes[1]), plain_cell(bytes[2])});
}

void add_pool(TextTable& table, const SlotPool& pool) {
  TierBytes bytes{};
  bytes[static_cast<std::size_t>(pool.tier)] =
      pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots);
  add_plain(table, "  " + pool.name,
            fmt::format("{} x {}", pool.num_slots, format_bytes(pool.slot_bytes)), bytes);
}

void add_limits(TextTable& table, const TierLimits& limits) {
  std::uint64_t drives = 0;
  for (std::uint64_t bytes : limits.drive_bytes) drives += bytes;
  table.add_row({"limit", "", limit_cell(limits.device_bytes), limit_cell(limits.host_bytes),
                 limits.drive_bytes.empty() ? "no path" : format_bytes(drives)});
}

bool is_pool(const Plan& plan, const Usage& usage) {
  return std::ranges::find(plan.pools, usage.name, &SlotPool::name) != plan.pools.end();
}

nlohmann::ordered_json region_json(const Region& region) {
  nlohmann::ordered_json json{
      {"tier", tier_name(region.tier)}, {"offset", region.offset}, {"bytes", region.bytes}};
  if (region.tier == Tier::nvme) json["drive"] = region.drive;
  return json;
}

std::string_view access_name(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::produce:
      return "produce";
    case Access::accumulate:
      return "accumulate";
    case Access::update:
      return "update";
  }
  return "?";
}

std::string_view content_name(Content content) {
  switch (content) {
    case Content::value:
      return "value";
    case Content::contribution:
      return "contribution";
    case Content::scratch:
      return "scratch";
    case Content::partials:
      return "partials";
    case Content::scalars:
      return "scalars";
    case Content::rank_contribution:
      return "rank_contribution";
    case Content::rank_sums:
      return "rank_sums";
    case Content::rank_metrics:
      return "rank_metrics";
  }
  return "?";
}

nlohmann::ordered_json op_json(const Program& program, const Op& op) {
  nlohmann::ordered_json json{
      {"id", op.id.value}, {"kind", op_kind_name(op.kind)}, {"lane", lane_name(op.lane)}};
  if (op.segment.valid()) json["segment"] = program.segment(op.segment).name;
  for (const Operand& operand : op.operands) {
    auto item = region_json(operand.region);
    item["access"] = access_name(operand.access);
    item["content"] = content_name(operand.what.content);
    if (operand.what.shard.valid()) item["shard"] = program.shard(operand.what.shard).name;
    if (operand.what.tile >= 0) item["tile"] = operand.what.tile;
    if (operand.what.tile == all_slices) item["tile"] = "all slices";
    if (operand.what.tile == own_slice) item["tile"] = "own slice";
    json["operands"].push_back(std::move(item));
  }
  for (const Edge& edge : op.after)
    json["after"].push_back({{"op", edge.op.value}, {"steps_back", edge.steps_back}});
  return json;
}

nlohmann::ordered_json shard_json(const Plan& plan, const Shard& shard) {
  nlohmann::ordered_json json{{"name", shard.name},
                              {"role", role_name(shard.role)},
                              {"block", shard.block},
                              {"dtype", dtype_name(shard.dtype)},
                              {"count", shard.count}};
  if (shard.whole_count > 0) {
    json["sharing"] = shard.sharing == Sharing::sliced ? "sliced" : "replicated";
    json["whole_count"] = shard.whole_count;
  }
  for (const Region& home : plan.homes[shard.id.index()])
    json["homes"].push_back(region_json(home));
  return json;
}

nlohmann::ordered_json tiers_json(const TierBytes& bytes) {
  return {{"gpu", bytes[0]}, {"cpu", bytes[1]}, {"nvme", bytes[2]}};
}

class Hash {
 public:
  Hash() : state_(XXH3_createState()) {
    ensure(state_ != nullptr);
    XXH3_64bits_reset(state_);
  }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  template <std::integral T>
  void add(T value) {
    const auto wide = static_cast<std::int64_t>(value);
    XXH3_64bits_update(state_, &wide, sizeof wide);
  }
  void add(const std::string& text) {
    add(text.size());
    XXH3_64bits_update(state_, text.data(), text.size());
  }
  std::uint64_t digest() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* state_;
};

void add(Hash& hash, const Region& region) {
  hash.add(static_cast<int>(region.tier));
  hash.add(region.drive);
  hash.add(region.offset);
  hash.add(region.bytes);
}

void add(Hash& hash, const Op& op) {
  hash.add(static_cast<int>(op.kind));
  hash.add(static_cast<int>(op.lane));
  hash.add(op.segment.value);
  hash.add(op.first_contribution);
  for (const Operand& operand : op.operands) {
    hash.add(operand.what.shard.value);
    hash.add(operand.what.tile);
    hash.add(static_cast<int>(operand.what.content));
    hash.add(static_cast<int>(operand.access));
    add(hash, operand.region);
  }
  for (const Edge& edge : op.after) {
    hash.add(edge.op.value);
    hash.add(edge.steps_back);
  }
}

}  // namespace

std::string format_plan(const Program& program, const Plan& plan) {
  constexpr auto right = TextTable::Align::right;
  const std::string title = program.world == 1
                                ? "where it lives"
                                : fmt::format("where it lives, per rank of {} (ZeRO stage {})",
                                              program.world, program.zero_stage);
  TextTable table({{title}, {"total", right}, {"gpu", right}, {"cpu", right}, {"nvme", right}});
  for (const Usage& usage : plan.usage)
    if (usage.is_home) add_home(table, usage);
  table.add_row({"what it moves through", "", "", "", ""});
  for (const SlotPool& pool : plan.pools) add_pool(table, pool);
  for (const Usage& usage : plan.usage)
    if (!usage.is_home && !is_pool(plan, usage))
      add_plain(table, "  " + usage.name, format_bytes(sum(usage.bytes)), usage.bytes);
  add_plain(table, "peak", format_bytes(sum(plan.tier_bytes)), plan.tier_bytes);
  add_limits(table, plan.limits);
  return table.text();
}

nlohmann::ordered_json plan_json(const Program& program, const Plan& plan) {
  nlohmann::ordered_json json;
  json["format"] = "strata-plan-1";
  json["hash"] = fmt::format("{:016x}", plan_hash(program, plan));
  json["tile_elements"] = program.tile_elements;
  if (program.world > 1)
    json["ranks"] = {
        {"world", program.world}, {"rank", program.rank}, {"zero_stage", program.zero_stage}};
  json["peak_bytes"] = tiers_json(plan.tier_bytes);
  json["drive_bytes"] = plan.drive_bytes;
  for (const Usage& usage : plan.usage)
    json["usage"].push_back(
        {{"name", usage.name}, {"home", usage.is_home}, {"bytes", tiers_json(usage.bytes)}});
  for (const SlotPool& pool : plan.pools)
    json["pools"].push_back({{"name", pool.name},
                             {"tier", tier_name(pool.tier)},
                             {"offset", pool.offset},
                             {"slot_bytes", pool.slot_bytes},
                             {"num_slots", pool.num_slots}});
  for (const Shard& shard : program.shards) json["shards"].push_back(shard_json(plan, shard));
  for (const Schedule& schedule : plan.schedules) {
    nlohmann::ordered_json ops = nlohmann::ordered_json::array();
    for (const Op& op : schedule.ops) ops.push_back(op_json(program, op));
    json["schedules"].push_back({{"name", schedule.name}, {"ops", std::move(ops)}});
  }
  return json;
}

std::string plan_to_json(const Program& program, const Plan& plan) {
  return plan_json(program, plan).dump(1);
}

std::uint64_t plan_hash(const Program& program, const Plan& plan) {
  Hash hash;
  hash.add(program.tile_elements);
  hash.add(program.world);
  hash.add(program.rank);
  if (program.world > 1) hash.add(program.zero_stage);
  for (const Shard& shard : program.shards) {
    hash.add(shard.name);
    hash.add(static_cast<int>(shard.dtype));
    hash.add(shard.count);
    if (program.world > 1) hash.add(shard.whole_count);
    for (const Region& home : plan.homes[shard.id.index()]) add(hash, home);
  }
  for (const Schedule& schedule : plan.schedules) {
    hash.add(schedule.name);
    for (const Op& op : schedule.ops) add(hash, op);
  }
  return hash.digest();
}

}  // namespace strata
