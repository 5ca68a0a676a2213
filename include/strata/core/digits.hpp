#pragma once
// Numbers as people read them. Thread contract: any thread.

#include <string>

namespace strata {

// Three significant digits: "3.46", "34.6", "346", "0.0123"; beyond a million and below a
// thousandth "1.23e+09". Not a number: "-".
std::string three_digits(double value);

}  // namespace strata
