#pragma once
// Whether a request can be issued at all, and the limits of IoOptions.

#include "io/common/open_file.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

// A failure with the facts, or an ok result. `file` is nullptr when the request's file is not open.
IoResult refusal(const IoRequest& request, const OpenFile* file);

// Throws ConfigError naming the option.
void check_options(const IoOptions& options);

}  // namespace strata
