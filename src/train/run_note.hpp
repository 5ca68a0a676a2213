#pragma once
// What a checkpoint says of the data and the model that its run was of, and where a run that goes
// on from it finds its place in the data.

#include <cstdint>
#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/data/batches.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

// What every checkpoint of a run says alike: of its data, model, seeds and config.
RunNote run_facts_of(const RunConfig& config, const PlannedRun& run);

// Of the token shards and how they are laid out in rows, in order.
std::string data_fingerprint(const RunConfig& config);
std::string held_out_fingerprint(const RunConfig& config);

// Of the model's tensors.
std::string model_fingerprint(const PlannedRun& run);
// Throws ConfigError when the run's model is not the checkpoint's.
void check_same_model(const PlannedRun& run, const RunNote& note);

// The micro-batch, counted on each rank, that comes next. Throws ConfigError when the run's data is
// not the checkpoint's, or its micro-batches do not meet the place.
std::int64_t resume_index(const RunConfig& config, const RunNote& note, const Batches& batches);

}  // namespace strata
