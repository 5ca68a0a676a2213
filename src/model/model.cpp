#include "strata/model/model.hpp"

namespace strata {

MicroBatchView micro_batch_view(std::byte* input, std::int64_t tokens_per_micro_batch) {
  auto* values = reinterpret_cast<std::int32_t*>(input);
  return {values, values + tokens_per_micro_batch, values + 2 * tokens_per_micro_batch};
}

}  // namespace strata
