#pragma once
// How mpirun leaves those alone that a failure has left, and takes no notice of how they end: what
// they say is theirs to say, whether a busy machine lets them run soon or late.

#include <map>
#include <string>

namespace strata {

inline const std::map<std::string, std::string> left_alone{
    {"OMPI_MCA_orte_enable_recovery", "1"}, {"OMPI_MCA_orte_abort_on_non_zero_status", "0"}};

}  // namespace strata
