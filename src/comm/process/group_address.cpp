#include "group_address.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// "[::1]", as it is written before a port, is "::1".
std::string without_brackets(const std::string& address) {
  const bool is_bracketed = address.size() > 2 && address.front() == '[' && address.back() == ']';
  return is_bracketed ? address.substr(1, address.size() - 2) : address;
}

error_code try_listen(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error, ignored;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor.set_option(tcp::acceptor::reuse_address(true), ignored);
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) acceptor.close(ignored);
  return error;
}

std::string listen_advice(const error_code& error) {
  if (error == asio::error::address_in_use)
    return "another program has this port; set MASTER_PORT to a free one, alike for all processes";
  if (error == error_code(EADDRNOTAVAIL, boost::system::system_category()))
    return "this is no address of this host; set MASTER_ADDR to one of the host that process 0 "
           "runs on, alike for all processes";
  if (error == asio::error::access_denied)
    return "set MASTER_PORT to one from 1024, alike for all processes";
  return "set MASTER_ADDR and MASTER_PORT, alike for all processes";
}

}  // namespace

std::string to_text(const std::string& address, std::uint16_t port) {
  const bool needs_brackets = address.find(':') != std::string::npos && !address.starts_with('[');
  return needs_brackets ? fmt::format("[{}]:{}", address, port)
                        : fmt::format("{}:{}", address, port);
}

std::string to_text(const tcp::endpoint& endpoint) {
  return to_text(endpoint.address().to_string(), endpoint.port());
}

std::vector<tcp::endpoint> resolve_group_address(const Launch& launch, std::uint16_t port,
                                                 std::string& why) {
  asio::io_context context;
  tcp::resolver resolver(context);
  error_code error;
  const auto found = resolver.resolve(without_brackets(launch.address), std::to_string(port),
                                      tcp::resolver::numeric_service, error);
  if (error) why = error.message();
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

tcp::acceptor listen_for_group(asio::io_context& context, const Launch& launch) {
  std::string why;
  const auto endpoints = resolve_group_address(launch, launch.port, why);
  if (endpoints.empty())
    throw ConfigError(
        fmt::format("process 0 is to listen on {}, but this name is unknown here: "
                    "{}; set MASTER_ADDR to a name or address of its host",
                    launch.address, why));
  tcp::acceptor acceptor(context);
  error_code error;
  for (const tcp::endpoint& endpoint : endpoints) {
    error = try_listen(acceptor, endpoint);
    if (!error) return acceptor;
  }
  throw ConfigError(fmt::format("process 0 cannot listen on {}: {}: {}",
                                to_text(launch.address, launch.port), error.message(),
                                listen_advice(error)));
}

std::string address_advice(const Launch& launch, const std::vector<tcp::endpoint>& endpoints) {
  const bool is_local = std::ranges::all_of(
      endpoints, [](const tcp::endpoint& endpoint) { return endpoint.address().is_loopback(); });
  if (!is_local || endpoints.empty() || launch.num_local_processes == launch.num_processes)
    return "";
  return fmt::format(
      "; the job runs on several hosts, and on each of them {} means that host "
      "itself: set MASTER_ADDR to the name or address of process 0's host",
      launch.address);
}

}  // namespace strata
