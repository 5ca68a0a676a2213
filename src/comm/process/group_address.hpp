#pragma once
// Where process 0 is: names to addresses, and the port it listens on. Thread contract: any thread.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/comm/launch.hpp"

namespace strata {

std::string to_text(const boost::asio::ip::tcp::endpoint& endpoint);  // "[::1]:29500"
std::string to_text(const std::string& address, std::uint16_t port);  // "node7:29500"

// What launch.address (a name, an IPv4 or IPv6 address) stands for here, with the port. Empty when
// nothing; then `why` says it.
std::vector<boost::asio::ip::tcp::endpoint> resolve_group_address(const Launch& launch,
                                                                  std::uint16_t port,
                                                                  std::string& why);

// Binds the first of the addresses that can be bound; port 0: one of the system's. Throws
// ConfigError, saying what to do.
boost::asio::ip::tcp::acceptor listen_for_group(boost::asio::io_context& context,
                                                const Launch& launch);

// Advice for when processes do not find each other, beginning with "; ", or empty.
std::string address_advice(const Launch& launch,
                           const std::vector<boost::asio::ip::tcp::endpoint>& endpoints);

}  // namespace strata
