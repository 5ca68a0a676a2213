#pragma once
// How reports print what was measured. Thread contract: any thread.

#include <string>

#include "strata/core/text_table.hpp"
#include "strata/measure/samples.hpp"

namespace strata {

constexpr double micro = 1e-6, mega = 1e6, giga = 1e9, tera = 1e12;
constexpr auto right = TextTable::Align::right;

// "12.3 (11.9-12.8)", the median with the least and the most, in units of `unit`; "-" without a
// sample.
std::string with_range(const Samples& samples, double unit);

}  // namespace strata
