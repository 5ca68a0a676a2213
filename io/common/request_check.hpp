#pragma once
// Whether a request can be issued at all, and the limits of IoOptions.

#include "io/common/open_file.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

// An ok result, or a failure whose message is the reason: failure_message() makes a sentence of it.
// Where the request's file is not open, `file` is nullptr and the message has all that is known.
IoResult refusal(const IoRequest& request, const OpenFile* file);

// Throws ConfigError naming the option.
void check_options(const IoOptions& options);

}  // namespace strata
