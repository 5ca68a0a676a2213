#pragma once
// CPU time that this process has used so far, in user and kernel mode, all threads together.
// Thread contract: any thread.

namespace strata {

double process_cpu_seconds();

}  // namespace strata
