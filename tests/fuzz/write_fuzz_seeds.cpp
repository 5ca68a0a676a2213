// Writes the first inputs of each fuzzer below a folder: write_fuzz_seeds DIR.

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/checkpoint_inputs.hpp"
#include "fuzz/store_inputs.hpp"

namespace {

namespace fs = std::filesystem;
using strata::testing::Bytes;

void write(const fs::path& folder, const std::vector<Bytes>& seeds) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(folder / ("seed" + std::to_string(i)), std::ios::binary);
    file << strata::testing::as_text(seeds[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_fuzz_seeds DIR\n", stderr);
    return 2;
  }
  const fs::path folder = argv[1];
  write(folder / "fuzz_store_json", strata::testing::description_seeds());
  write(folder / "fuzz_store_manifest", strata::testing::manifest_seeds());
  write(folder / "fuzz_store_open", strata::testing::store_seeds());
  write(folder / "fuzz_checkpoint_manifest", strata::testing::checkpoint_manifest_seeds());
  return 0;
}
