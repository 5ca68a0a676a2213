#include <fmt/format.h>

#include <cmath>

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "strata/core/error.hpp"
#include "strata/train/trainer.hpp"

namespace strata {

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Held-out loss of the model over eval_dataset");
  auto run = add_run_options(*command);
  command->callback([&action, run] {
    action = [run] {
      const RunConfig config = load_run_config(*run);
      const auto batches = held_out_batches(config);
      Session session(config, plan_run(config, Purpose::evaluate));
      const Evaluation result = session.evaluate(*batches);
      fmt::print("loss {:.6f} perplexity {:.4f} over {} tokens\n", result.loss,
                 std::exp(result.loss), result.tokens);
      return 0;
    };
  });
}

}  // namespace strata
