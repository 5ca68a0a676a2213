#pragma once
// The GroupBoard is where a group's own thread puts what it learns and the program's threads wait
// for it: that all have come, the texts of an exchange, that the job has failed.
//
// Thread contract: wait_joined(), begin_round() and wait_texts() from one thread at a time, the
// rest from the group's.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "group_message.hpp"

namespace strata {

class GroupBoard {
 public:
  explicit GroupBoard(int num_processes);

  void set_joined();
  void refuse(GroupRefusal kind, const std::string& reason);
  void wait_joined();  // Throws ConfigError when processes differ, else Error.

  // Of exchange `round`, counted from 1, which after a failure never ends. False: out of turn.
  [[nodiscard]] bool put_text(int process, std::uint64_t round, std::string text);
  // `who` gives no more texts; when `passes_on`, it also brought those of the others.
  void set_left(int process, const std::string& who, bool passes_on);
  // The number of the next exchange. Throws Error when it could not end.
  std::uint64_t begin_round();
  // By process. Throws Error when they cannot come any more.
  std::vector<std::string> wait_texts(std::uint64_t round);

  void fail(const std::string& reason);  // The first counts.

 private:
  struct Refusal {
    GroupRefusal kind;
    std::string reason;
  };
  struct Place {
    std::optional<std::string> text;  // of the exchange that goes on
    std::string left_as;
  };

  // Under the lock.
  void end_round();
  const std::string* leaver() const;  // Who will never give what is waited for.
  bool is_over() const { return !failure_.empty() || leaver() != nullptr; }
  [[noreturn]] void throw_why() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_joined_ = false;
  std::optional<Refusal> refusal_;
  std::vector<Place> places_;
  std::uint64_t round_ = 1;  // that goes on
  std::size_t num_texts_ = 0;
  std::vector<std::string> ended_texts_;  // of the round before
  std::string hub_left_as_, failure_;
};

}  // namespace strata
