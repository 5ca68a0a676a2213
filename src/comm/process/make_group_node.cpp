// The two parts in a group, made of what can be said before the group's thread runs: the port that
// process 0 has, and the address that the others have for it.

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "group_address.hpp"
#include "group_hub.hpp"
#include "group_node.hpp"
#include "group_spoke.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds resolve_pause{200};

bool shares_port(const ProcessGroupOptions& options) {
  return options.launch.port == 0 && options.share_port;
}

// The others wait for the port: 0 tells them that there is none.
tcp::acceptor listen_and_share(asio::io_context& context, const ProcessGroupOptions& options) {
  if (!shares_port(options)) return listen_for_group(context, options.launch);
  std::optional<tcp::acceptor> acceptor;
  try {
    acceptor = listen_for_group(context, options.launch);
  } catch (const Error&) {
    options.share_port(0);
    throw;
  }
  options.share_port(acceptor->local_endpoint().port());
  return std::move(*acceptor);
}

std::uint16_t port_of_hub(const ProcessGroupOptions& options) {
  if (!shares_port(options)) return options.launch.port;
  const std::uint16_t port = options.share_port(0);
  if (port == 0) throw Error("process 0 could not listen on a port, so nobody can join it");
  return port;
}

// A host may come to have a name only while the job starts.
GroupDialer::Endpoints wait_for_address(const Launch& launch, std::uint16_t port, double join_s) {
  const std::int64_t begin_ns = now_ns();
  std::string why;
  while (true) {
    GroupDialer::Endpoints endpoints = resolve_group_address(launch, port, why);
    if (!endpoints.empty()) return endpoints;
    if (seconds(now_ns() - begin_ns) > join_s) break;
    std::this_thread::sleep_for(resolve_pause);
  }
  throw Error(
      fmt::format("process {} cannot find process 0: the name {} is unknown here ({}); set "
                  "MASTER_ADDR to the name or address of process 0's host",
                  launch.process, launch.address, why));
}

}  // namespace

std::unique_ptr<GroupNode> make_group_hub(asio::io_context& context,
                                          const ProcessGroupOptions& options, GroupBoard& board) {
  return std::make_unique<GroupHub>(context, listen_and_share(context, options), options, board);
}

std::unique_ptr<GroupNode> make_group_spoke(asio::io_context& context,
                                            const ProcessGroupOptions& options, GroupBoard& board) {
  const std::uint16_t port = port_of_hub(options);
  return std::make_unique<GroupSpoke>(
      context, wait_for_address(options.launch, port, options.join_s), options, board);
}

}  // namespace strata
