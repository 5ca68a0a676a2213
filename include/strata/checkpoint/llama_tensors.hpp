#pragma once
// The tensors that a Hugging Face folder of a Llama-class model holds, named as transformers names
// them. Thread contract: any thread.

#include <cstdint>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

// In the order of use; a tied model has no lm_head.weight.
std::vector<ExpectedTensor> llama_tensors(const HfConfig& config);
std::int64_t element_count(const ExpectedTensor& tensor);
std::int64_t num_parameters(const HfConfig& config);

}  // namespace strata
