#include "config_dtype.hpp"

#include "strata/core/error.hpp"

namespace strata {
namespace {

// Walks valid JSON text and remembers only what tells a key of the root from all other strings.
class RootTextReplacer {
 public:
  RootTextReplacer(const std::string& text, std::string_view value) : text_(text), value_(value) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return std::move(result_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '"') return string();
    if (c == '{' || c == '[') ++depth_;
    if (c == '}' || c == ']') --depth_;
    if (c == ',') in_dtype_ = false;
    result_ += c;
    ++at_;
  }

  // A string that follows a dtype key at the root, before any comma, is its value.
  void string() {
    const std::string_view literal = take_literal();
    if (depth_ == 1 && in_dtype_) {
      result_.append("\"").append(value_).append("\"");
      in_dtype_ = false;
    } else {
      result_ += literal;
      in_dtype_ =
          depth_ == 1 && (literal == "\"dtype\"" || literal == "\"torch_dtype\"") && is_key();
    }
  }

  std::string_view take_literal() {
    const std::size_t start = at_++;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
    return std::string_view(text_).substr(start, at_ - start);
  }

  bool is_key() const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", at_);
    return next != std::string::npos && text_[next] == ':';
  }

  const std::string& text_;
  std::string_view value_;
  std::string result_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool in_dtype_ = false;
};

}  // namespace

std::string_view hf_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::f32:
      return "float32";
    default:
      ensure(false);
  }
  return {};
}

std::string with_config_dtype(const std::string& text, std::string_view name) {
  return RootTextReplacer(text, name).run();
}

}  // namespace strata
