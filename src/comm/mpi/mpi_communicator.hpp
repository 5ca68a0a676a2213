#pragma once
// The Communicator of one rank on one line whose bytes MPI carries. Ranks of one process are told
// apart by tags only: they exchange messages like any others.

#include <memory>

#include "mpi_endpoint.hpp"
#include "strata/comm/communicator.hpp"

namespace strata {

std::unique_ptr<Communicator> make_mpi_communicator(std::shared_ptr<MpiEndpoint> endpoint);

}  // namespace strata
