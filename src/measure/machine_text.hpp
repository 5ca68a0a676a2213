#pragma once
// What a report says of the machine it was made on, and when. Thread contract: any thread.

#include <string>

namespace strata {

std::string kernel_text();     // "6.18.44"
std::string processor_text();  // "AMD EPYC 9654 96-Core Processor"; empty when unknown
std::string utc_now_text();    // "2026-11-29T20:15:01Z"

}  // namespace strata
