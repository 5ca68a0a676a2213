#pragma once
// A plain text table: columns as wide as their widest cell, two spaces apart, numbers to the right.
// Thread contract: a value.

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns);
  void add_row(std::vector<std::string> cells);  // as many as there are columns
  std::string text() const;

 private:
  std::string line(const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata
