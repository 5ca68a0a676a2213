#pragma once
// Enough of C++ to find the types that a file defines, and in which namespace: comments, literals
// and preprocessor lines go, braces nest, a brace belongs to the statement before it. Thread
// contract: pure.

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace strata {

struct TypeDefinition {
  std::string scope;  // "strata", "strata::cpu", "strata::(anonymous)"
  std::string name;
};

class SourceScanner {
 public:
  explicit SourceScanner(const std::string& text) {
    tokenize(without_comments(text));
    for (const std::string& token : tokens_) take(token);
  }
  std::vector<TypeDefinition> types() const { return types_; }

 private:
  using Tokens = std::vector<std::string>;

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  // A quote between word characters parts the digits of a number.
  static bool opens_literal(const std::string& text, std::size_t at) {
    return text[at] == '"' || (text[at] == '\'' && (at == 0 || !is_word(text[at - 1])));
  }
  static std::size_t literal_end(const std::string& text, std::size_t at) {
    if (at > 0 && text[at - 1] == 'R' && text[at] == '"') {
      const std::string mark = ")" + text.substr(at + 1, text.find('(', at) - at - 1) + "\"";
      const std::size_t end = text.find(mark, at);
      return end == std::string::npos ? text.size() : end + mark.size();
    }
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != quote; ++at)
      if (text[at] == '\\') ++at;
    return at + 1;
  }
  static std::size_t preprocessor_end(const std::string& text, std::size_t at) {
    while (at < text.size() && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    return at;
  }

  static std::string without_comments(const std::string& text) {
    std::string code;
    for (std::size_t at = 0; at < text.size();) {
      if (text.compare(at, 2, "//") == 0)
        at = std::min(text.find('\n', at), text.size());
      else if (text.compare(at, 2, "/*") == 0)
        at = std::min(text.find("*/", at), text.size() - 2) + 2;
      else if (text[at] == '#')
        at = preprocessor_end(text, at);
      else if (opens_literal(text, at))
        at = literal_end(text, at);
      else
        code += text[at++];
    }
    return code;
  }

  void tokenize(const std::string& code) {
    for (std::size_t at = 0; at < code.size();) {
      std::size_t end = at + 1;
      if (is_word(code[at]))
        while (end < code.size() && is_word(code[end])) ++end;
      else if (code.compare(at, 2, "::") == 0)
        end = at + 2;
      if (std::isspace(static_cast<unsigned char>(code[at])) == 0)
        tokens_.push_back(code.substr(at, end - at));
      at = end;
    }
  }

  void take(const std::string& token) {
    if (token == "{")
      open();
    else if (token == "}")
      close();
    else if (token == ";")
      statement_.clear();
    else
      statement_.push_back(token);
  }
  void open() {
    const std::string name = type_name(statement_);
    if (!name.empty() && is_namespaces_only()) types_.push_back({scope(), name});
    scopes_.push_back(namespace_name(statement_));
    statement_.clear();
  }
  void close() {
    if (!scopes_.empty()) scopes_.pop_back();
    statement_.clear();
  }

  bool is_namespaces_only() const { return std::ranges::find(scopes_, "") == scopes_.end(); }
  std::string scope() const {
    std::string text;
    for (const std::string& name : scopes_) text += (text.empty() ? "" : "::") + name;
    return text;
  }

  // Empty when the statement opens no namespace.
  static std::string namespace_name(const Tokens& statement) {
    const auto word = std::ranges::find(statement, "namespace");
    if (word == statement.end()) return "";
    std::string name;
    for (auto part = word + 1; part != statement.end(); ++part) name += *part;
    return name.empty() ? "(anonymous)" : name;
  }

  static Tokens without_template(Tokens statement) {
    while (!statement.empty() && statement.front() == "template") {
      int depth = 0;
      auto at = statement.begin() + 1;
      for (; at != statement.end(); ++at) {
        depth += *at == "<" ? 1 : *at == ">" ? -1 : 0;
        if (depth == 0) break;
      }
      statement.erase(statement.begin(), at == statement.end() ? at : at + 1);
    }
    return statement;
  }

  // The name of the class, struct, union or enum that the statement defines; empty for any other,
  // and for a nested type that is defined outside of its class.
  static std::string type_name(const Tokens& whole) {
    const Tokens statement = without_template(whole);
    const auto is_keyword = [](const std::string& token) {
      return token == "class" || token == "struct" || token == "union" || token == "enum";
    };
    if (statement.empty() || !is_keyword(statement.front())) return "";
    auto name = std::ranges::find_if_not(statement, is_keyword);
    if (name == statement.end() || !is_word(name->front())) return "";
    const bool is_qualified = name + 1 != statement.end() && *(name + 1) == "::";
    return is_qualified ? "" : *name;
  }

  Tokens tokens_, statement_;
  std::vector<std::string> scopes_;  // names of namespaces; "" for other braces
  std::vector<TypeDefinition> types_;
};

}  // namespace strata
