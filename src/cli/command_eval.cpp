#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/byte_progress.hpp"
#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "strata/core/error.hpp"
#include "strata/train/planned_ranks.hpp"
#include "strata/train/trainer.hpp"

namespace strata {
namespace {

void print_evaluation(const Evaluation& result) {
  fmt::print("loss {:.6f} perplexity {:.4f} over {} tokens\n", result.loss, std::exp(result.loss),
             result.tokens);
}

int evaluate(Job& job, const RunConfig& config) {
  held_out_batches(config);  // What it refuses, before anything is planned.
  if (job.leads()) print_warnings(data_warnings(config, Purpose::evaluate));
  const std::unique_ptr<DriveOwner> drives = own_drives(config, Purpose::evaluate, job);
  SessionOptions shared;
  shared.make_engine = shared_engine(make_offload_engine);
  const DeviceChoice devices = choose_and_tell_devices(config, job);
  run_planned(config, job, plan_ranks(config, Purpose::evaluate, job, devices), shared,
              [&](PlannedRun planned, const SessionOptions& options) {
                const int rank = planned.program.rank;
                ByteProgress loading("loading", "weights", rank == 0 ? stderr : nullptr);
                SessionOptions own = options;
                own.on_load = loading.watch();
                Session session(config, std::move(planned), own);
                loading.finish();
                const Evaluation result = session.evaluate(*held_out_batches(config, rank));
                if (rank == 0) print_evaluation(result);
                if (!std::isfinite(result.loss))
                  throw Error("the loss is not finite: look at the weights of " +
                              config.model_name_or_path.string());
              });
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Held-out loss of the model over eval_dataset");
  auto run = add_run_options(*command);
  command->callback([&action, run] {
    action = [run] {
      RunConfig config = load_run_config(*run);
      Job job(read_launch(), job_options(config));
      config.world = job.world();
      return job.guard([&] { return evaluate(job, config); });
    };
  });
}

}  // namespace strata
