#pragma once
// Numbers as people read them. Thread contract: any thread.

#include <string>
#include <string_view>

namespace strata {

// Three significant digits: "3.46", "34.6", "346", "0.0123"; beyond a million and below a
// thousandth "1.23e+09". Not a number: "-".
std::string three_digits(double value);
// "3.50 GB/s" of 3.5e9 and "B/s": three digits, powers of 1000, as data sheets count.
std::string scaled(double value, std::string_view unit);

}  // namespace strata
