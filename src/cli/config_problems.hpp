#pragma once
// What is wrong with a config, gathered over all of it and told at once.

#include <map>
#include <string>

#include "strata/core/error.hpp"

namespace strata {

class ConfigProblems {
 public:
  // In the order of `rank`: that of the lines they are in.
  void add(int rank, std::string text);
  // What `read` throws is one of them.
  template <typename F>
  void collect(int rank, F&& read) {
    try {
      read();
    } catch (const ConfigError& error) {
      add(rank, error.what());
    }
  }
  void check() const;  // Throws ConfigError of a line for each.

 private:
  std::multimap<int, std::string> texts_;
};

}  // namespace strata
