#pragma once
// What size of pages really lies behind memory. Asking for huge pages is advice: the system may
// have none, and direct I/O from 4 KiB pages runs at a half or a third of the rate.
// Thread contract: pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace strata {

// 2 MiB when nine tenths of the memory are on such pages, else the system's page size.
std::uint64_t page_bytes_behind(std::span<const std::byte> memory);

// The same of the text of /proc/self/smaps and a range of addresses.
std::uint64_t page_bytes_in_smaps(const std::string& smaps, std::uint64_t begin, std::uint64_t end);

}  // namespace strata
