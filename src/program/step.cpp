#include "strata/program/step.hpp"

#include "strata/core/error.hpp"

namespace strata {

TensorView& TileUpdate::operand(Role role) {
  switch (role) {
    case Role::gradient:
      return gradient;
    case Role::master:
      return master;
    case Role::moment1:
      return moment1;
    case Role::moment2:
      return moment2;
    default:
      ensure(role == Role::weight);
      return weight;
  }
}

}  // namespace strata
