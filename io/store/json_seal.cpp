#include "io/store/json_seal.hpp"

#include <fmt/format.h>

#include "io/store/checksum.hpp"

namespace strata {
namespace {

std::string seal_of(std::string_view body) {
  return fmt::format("{}{:016x}\"\n}}\n", json_seal_begin,
                     checksum(std::as_bytes(std::span(body))));
}

}  // namespace

std::string with_json_seal(std::string body) {
  const std::string seal = seal_of(body);
  return std::move(body) + seal;
}

bool has_json_seal(std::string_view text) {
  if (text.size() < json_seal_bytes) return false;
  const std::size_t sealed = text.size() - json_seal_bytes;
  return text.substr(sealed) == seal_of(text.substr(0, sealed));
}

std::string resealed_json(std::string text) {
  if (text.size() >= json_seal_bytes) text.resize(text.size() - json_seal_bytes);
  return with_json_seal(std::move(text));
}

}  // namespace strata
