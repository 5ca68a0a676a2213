#pragma once
// A ProcessGroup joins the processes of one job over TCP, for what the carrier of the collectives
// does not do: it proves that all run the same thing, carries small texts, and tells at once which
// process failed or is gone. Process 0 listens; the others connect and stay connected.
//
// Strangers. The listener binds to the address it was told, loopback unless told otherwise, and
// takes what connects for hostile until it has said who it is in the right form: anything else is
// dropped, and costs the job nothing. Nothing is secret: who knows the protocol and the job's name
// can claim to be a process that has not come yet. Once all have come, nobody listens any more.
//
// Process 0 binds what launch.address stands for on its host, so that others must be able to reach
// it there: 127.0.0.1 is for processes of one host.
//
// Process 0 passes on what the others say. When it has left, the rest exchange no more and learn
// nothing of each other.
//
// Thread contract: exchange() from one thread at a time; fail() and on_failure() from any. Who is
// told of a failure is called on the group's own thread, must not throw or take long, and may call
// fail().

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/comm/launch.hpp"

namespace strata {

struct ProcessGroupOptions {
  Launch launch;
  // Must be alike in all processes (the version, the config ...): who differs is refused, by a
  // ConfigError on every process that shows both.
  std::string agreement;
  // Where the port was not told: process 0 binds one of the system's, and this brings it to the
  // others. Called once on each process; the argument counts on process 0 alone.
  std::function<std::uint16_t(std::uint16_t)> share_port = {};
  double join_s = 60;      // for all processes to come; process 0 may be the last
  double hello_s = 5;      // for who connects to say who it is
  double heartbeat_s = 1;  // how often a process says that it lives
  double silent_s = 10;    // after which one that says nothing counts as gone
};

class ProcessGroup {
 public:
  // Without a goodbye, when fail() was called or another failed; else the others are told that this
  // process is done.
  virtual ~ProcessGroup() = default;
  virtual const Launch& launch() const = 0;

  // Gives a text of at most 1 MiB and gets those of all processes, by process. All must call it
  // alike. Throws Error when the group fails or a process leaves while it waits.
  virtual std::vector<std::string> exchange(const std::string& text) = 0;

  // Who is told, once, that another process failed, or is gone without a goodbye: "process 1 (pid
  // 4242 on node7) is gone: its connection was closed". Told at once if it has happened already.
  // Takes the place of who was to be told before, who is not called any more when this returns; so
  // not to be called under a lock that one takes. Empty: nobody.
  virtual void on_failure(std::function<void(const std::string& reason)> told) = 0;
  // Tells the others that this process fails, and why. Only the first reason of a job goes round,
  // at most 64 KiB of it.
  virtual void fail(const std::string& reason) noexcept = 0;
};

// Throws ConfigError (processes that differ, an agreement beyond 1 MiB, no port, a port that is
// taken) or Error (not all came within join_s: names those that did not).
std::unique_ptr<ProcessGroup> join_process_group(const ProcessGroupOptions& options);

}  // namespace strata
