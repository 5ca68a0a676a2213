#include "strata/comm/mpi.hpp"
#include "strata/core/error.hpp"

namespace strata {

bool has_mpi() { return false; }

std::unique_ptr<MpiJob> MpiJob::start(const Launch&) {
  throw ConfigError(
      "this build has no MPI: several processes need it on hosts without GPUs; install Open MPI "
      "(scripts/install-dependencies) and build with STRATA_MPI=ON");
}

}  // namespace strata
