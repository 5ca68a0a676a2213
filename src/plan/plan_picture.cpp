#include "strata/plan/plan_picture.hpp"

#include "core/svg_chart_parts.hpp"
#include "plan/lane_picture.hpp"
#include "plan/memory_picture.hpp"
#include "plan/picture_page.hpp"
#include "strata/core/error.hpp"

namespace strata {

std::string draw_plan(const Program& program, const Plan& plan, std::string_view schedule,
                      const Simulation& simulation, const std::string& title) {
  const Schedule* ops = plan.schedule(schedule);
  if (ops == nullptr) throw ConfigError("the plan has no schedule '" + std::string(schedule) + "'");
  const PicturePage page{.seconds = simulation.step_seconds};
  double y = 6;
  std::string body = draw_heading(title, y);
  for (const Tier tier : {Tier::device, Tier::host})
    if (plan.tier_bytes[static_cast<std::size_t>(tier)] > 0)
      body += draw_memory(page, program, plan, *ops, simulation, tier, y);
  body += draw_lanes(page, program, *ops, simulation, y);
  return picture_document(body, y + 12, title);
}

}  // namespace strata
