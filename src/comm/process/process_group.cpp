#include "strata/comm/process_group.hpp"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "group_node.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace asio = boost::asio;

void check_text(const std::string& text) {
  if (text.size() <= group_text_bytes_max) return;
  throw Error(fmt::format("a text of {} is too long for processes to exchange: at most {}",
                          format_bytes(text.size()), format_bytes(group_text_bytes_max)));
}

void check_options(const ProcessGroupOptions& options) {
  const Launch& launch = options.launch;
  ensure(launch.process >= 0 && launch.process < launch.num_processes);
  ensure(options.join_s > 0 && options.hello_s > 0);
  ensure(options.heartbeat_s > 0 && options.silent_s > 0);
  if (options.agreement.size() > group_text_bytes_max)
    throw ConfigError(fmt::format("processes cannot compare {} of config: at most {}",
                                  format_bytes(options.agreement.size()),
                                  format_bytes(group_text_bytes_max)));
  if (launch.is_alone() || launch.port != 0 || options.share_port) return;
  throw ConfigError(
      "several processes need a port to meet at: set MASTER_PORT to a free one of "
      "process 0's host, alike for all processes");
}

// One process needs nobody.
class AloneGroup final : public ProcessGroup {
 public:
  explicit AloneGroup(Launch launch) : launch_(std::move(launch)) {}
  const Launch& launch() const override { return launch_; }
  std::vector<std::string> exchange(const std::string& text) override {
    check_text(text);
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw Error(failure_);
    return {text};
  }
  void on_failure(ToldOfFailure) override {}
  void fail(const std::string& reason) noexcept override {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
  }

 private:
  Launch launch_;
  std::mutex mutex_;
  std::string failure_;
};

class TcpProcessGroup final : public ProcessGroup {
 public:
  explicit TcpProcessGroup(const ProcessGroupOptions& options)
      : launch_(options.launch),
        board_(launch_.num_processes),
        work_(context_.get_executor()),
        node_(launch_.process == 0 ? make_group_hub(context_, options, board_)
                                   : make_group_spoke(context_, options, board_)) {
    asio::post(context_, [this] { node_->start(); });
    thread_ = std::thread([this] { context_.run(); });
  }

  ~TcpProcessGroup() override {
    asio::post(context_, [this] { node_->leave(); });
    work_.reset();
    thread_.join();
  }

  void wait_joined() { board_.wait_joined(); }
  const Launch& launch() const override { return launch_; }

  std::vector<std::string> exchange(const std::string& text) override {
    check_text(text);
    const std::uint64_t round = board_.begin_round();
    asio::post(context_, [this, round, text] { node_->give_text(round, text); });
    return board_.wait_texts(round);
  }

  void on_failure(ToldOfFailure told) override {
    if (std::this_thread::get_id() == thread_.get_id()) return node_->set_told(std::move(told));
    std::promise<void> is_set;
    asio::post(context_, [&] {
      node_->set_told(std::move(told));
      is_set.set_value();
    });
    is_set.get_future().wait();
  }

  // Without memory to say so, the end of this process will tell the others.
  void fail(const std::string& reason) noexcept override {
    try {
      asio::post(context_, [this, reason] { node_->fail(reason); });
    } catch (...) {
    }
  }

 private:
  const Launch launch_;
  GroupBoard board_;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::unique_ptr<GroupNode> node_;  // The thread's, once that runs.
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ProcessGroup> join_process_group(const ProcessGroupOptions& options) {
  check_options(options);
  if (options.launch.is_alone()) return std::make_unique<AloneGroup>(options.launch);
  auto group = std::make_unique<TcpProcessGroup>(options);
  group->wait_joined();
  return group;
}

}  // namespace strata
