#pragma once
// Who a process of a group is, as people look for it. A value; no thread contract.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/comm/launch.hpp"

namespace strata {

struct GroupPeer {
  int process = 0;
  std::uint32_t pid = 0;
  std::string host;
};

GroupPeer this_group_peer(int process);
std::string describe(const GroupPeer& peer);  // "process 1 (pid 4242 on node7)"

// The body of a hello: "4242 node7". Nothing when it is not of that form: what is to be printed
// holds letters, digits, '.', '-', '_' and ':' alone.
std::string encode_group_peer(const GroupPeer& peer);
std::optional<GroupPeer> parse_group_peer(int process, std::string_view body);

// Alike in the processes of a job, and seldom in those of others. No secret.
std::uint64_t group_token(const Launch& launch);

}  // namespace strata
