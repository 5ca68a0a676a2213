#include "io/common/awaited_transfer.hpp"
#include "strata/core/error.hpp"

namespace strata {

void transfer(IoEngine& engine, const IoRequest& request) {
  AwaitedTransfer transfer;
  IoRequest awaited = request;
  awaited.completion = &transfer;
  engine.submit({&awaited, 1});
  const IoResult result = transfer.wait();
  if (!result.ok()) throw Error(result.message);
}

}  // namespace strata
