#pragma once
// The bytes of a Session's model state, to compare before and after.

#include <initializer_list>
#include <string>

#include "strata/train/session.hpp"

namespace strata::testing {

// Tiles of the roles in the order of the Program. Drains the executor.
inline std::string state_bytes(Session& session, std::initializer_list<Role> roles) {
  session.executor().drain();
  const Program& program = session.run().program;
  std::string bytes;
  for (const Role role : roles)
    for (const Shard& shard : program.shards) {
      if (shard.role != role) continue;
      for (int tile = 0; tile < program.num_tiles(shard.id); ++tile) {
        const auto part = session.state().read(shard.id, tile);
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
      }
    }
  return bytes;
}

inline std::string all_state_bytes(Session& session) {
  return state_bytes(session, {Role::weight, Role::master, Role::moment1, Role::moment2});
}

}  // namespace strata::testing
