#pragma once
// The shape of Llama-3-70B, for what is declared, planned and searched but never run.

#include "strata/model/model.hpp"

namespace strata::testing {

inline LlamaConfig llama_70b() {
  LlamaConfig config;
  config.vocab_size = 128256;
  config.hidden_size = 8192;
  config.intermediate_size = 28672;
  config.num_layers = 80;
  config.num_heads = 64;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.max_positions = 8192;
  return config;
}

}  // namespace strata::testing
