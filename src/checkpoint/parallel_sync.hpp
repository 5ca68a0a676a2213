#pragma once
// Flushing several files at once: a file system's journal takes the flushes that come together in
// one commit, and one after the other each waits for a commit of its own.

#include <span>

#include "strata/io/io_engine.hpp"

namespace strata {

// Throws the first failure, when all have ended.
void sync_files(IoEngine& engine, std::span<const FileId> files);

}  // namespace strata
