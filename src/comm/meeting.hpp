#pragma once
// A Meeting is what the ranks of a line do before any bytes of a collective move: all come, with
// the same call, or the job fails. Where one carrier brings the ranks together and another moves
// the bytes, the first is asked for this alone. Thread contract: as the Communicator's whose it is.

#include <cstdint>
#include <string>

#include "comm/collective.hpp"
#include "strata/core/dtype.hpp"

namespace strata {

struct MetCall {
  Collective kind = Collective::barrier;
  DType dtype = DType::f32;
  std::int64_t count = 0;
  int from = 0, to = 0;  // the ranks of a broadcast or send
};
inline std::string describe(const MetCall& call) {
  return describe(call.kind, call.dtype, call.count, call.from, call.to);
}

class Meeting {
 public:
  virtual ~Meeting() = default;
  // Returns when every rank has come with this call. Throws as a collective of the line would.
  virtual void meet(const MetCall& call) = 0;
  // The rank will never call again, though its end of the line may live on.
  virtual void leave() noexcept = 0;
};

}  // namespace strata
