#pragma once
// What the fake of NCCL keeps: communicators, the ranks that belong together, and groups of calls
// as messages. Values; the fake holds its lock over them.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/comm/nccl/nccl_api.hpp"

namespace strata::testing {

struct FakeNcclMessage {
  std::string kind;  // of the call
  std::vector<std::byte> bytes;
};

// Ranks that were told the same id.
struct FakeNcclClique {
  NcclId id;
  int world = 0;
  int num_joined = 0, num_finalized = 0, num_live = 0;
  std::map<std::pair<int, int>, std::deque<FakeNcclMessage>> mail;  // by sender and receiver
};

// One rank's part of a collective.
struct FakeNcclTransfer {
  std::string kind;
  int peer = 0;
  const std::byte* source = nullptr;  // of what is sent; or
  std::byte* target = nullptr;        // where it is received
  std::uint64_t bytes = 0;
};

struct FakeNcclGroup {
  NcclCommHandle comm = nullptr;
  void* stream = nullptr;
  bool is_broken = false;  // one of its calls failed
  std::vector<FakeNcclTransfer> sends, receives;
};

struct FakeNcclComm {
  std::shared_ptr<FakeNcclClique> clique;
  int rank = 0;
  bool is_aborted = false, is_finalized = false;
  std::uint64_t num_given = 0;    // groups that were given
  std::uint64_t num_begun = 0;    // that their streams have come to
  std::function<void()> pending;  // a group that is not on its stream yet
  int polls_left = 0;
};

}  // namespace strata::testing
