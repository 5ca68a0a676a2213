#pragma once
// What must hold for sectors and tails on any engine and any drive. Each check works on a file of
// its own at `path`, on a drive with direct I/O.
//
// A direct file moves whole sectors. The last bytes of a file whose length is no multiple of the
// sector cannot be read through it: a direct read that reaches beyond the end is an error that
// names the length, and a buffered descriptor of the same file has the tail.

#include <string>

#include "strata/io/io_engine.hpp"

namespace strata::testing {

void check_whole_sectors(IoEngine& engine, const std::string& path);
void check_half_sectors(IoEngine& engine, const std::string& path);
void check_tails(IoEngine& engine, const std::string& path);
void check_reads_across_an_odd_end(IoEngine& engine, const std::string& path);
void check_sector_over_tail(IoEngine& engine, const std::string& path);

}  // namespace strata::testing
