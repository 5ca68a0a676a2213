#pragma once
// Names gathered for one message: the first 20, and how many there are.

#include <cstddef>
#include <string>

namespace strata {

class NameList {
 public:
  void add(const std::string& name) {
    if (count_++ >= shown_max) return;
    if (!text_.empty()) text_ += ", ";
    text_ += name;
  }
  std::size_t count() const { return count_; }
  // "a, b" or, beyond 20, "a, b, ... (31 in all)".
  std::string text() const {
    if (count_ <= shown_max) return text_;
    return text_ + ", ... (" + std::to_string(count_) + " in all)";
  }

 private:
  static constexpr std::size_t shown_max = 20;
  std::size_t count_ = 0;
  std::string text_;
};

}  // namespace strata
