#include "comm/collective.hpp"

#include <fmt/format.h>

namespace strata {

std::string_view collective_name(Collective collective) {
  switch (collective) {
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::send:
      return "send";
    case Collective::barrier:
      return "barrier";
  }
  return "unknown";
}

std::string describe(Collective kind, DType dtype, std::int64_t count, int from, int to) {
  if (kind == Collective::barrier) return "barrier";
  std::string text = fmt::format("{} of {} {}", collective_name(kind), count, dtype_name(dtype));
  if (kind == Collective::broadcast || kind == Collective::send)
    text += fmt::format(" from rank {}", from);
  if (kind == Collective::send) text += fmt::format(" to rank {}", to);
  return text;
}

}  // namespace strata
