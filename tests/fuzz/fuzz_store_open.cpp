// Any bytes as the small files of a store on a simulated disk, whose tiles are zeros: refused with
// an Error, or a store that can be read, written and committed.

#include "fuzz/store_inputs.hpp"
#include "io/store/aligned_memory.hpp"
#include "io/store/store_report.hpp"
#include "strata/core/error.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata::testing {
namespace {

constexpr std::uint64_t tiles_bytes = 32 * 1024;

void put_part(FileSystem& files, const std::string& path, const std::string& description) {
  files.make_directory(path);
  files.write_file(path + "/tiles", Bytes(tiles_bytes));
  files.write_file(path + "/store.json", std::as_bytes(std::span(description)));
}

void put(FileSystem& files, const StoreFiles& store) {
  put_part(files, "/a/run", store.description);
  if (!store.second_description.empty()) put_part(files, "/b/run", store.second_description);
  files.write_file("/a/run/manifest.0", store.manifest);
  files.write_file("/a/run/manifest.1", store.manifest);
}

void use(ShardStore& store) {
  if (store.num_tiles() == 0) return;
  for (int tile : {0, store.num_tiles() - 1}) {
    const AlignedMemory memory(store.alignment(), store.padded_bytes(tile), "the fuzzer");
    store.transfer(IoOp::write, tile, memory.span());
    store.transfer(IoOp::read, tile, memory.span());
  }
  const std::uint64_t last = store.committed_version().value_or(0);
  if (last == ~std::uint64_t{0}) return;
  store.commit(last + 1, store.committed_note());
}

void open(IoEngine& engine, Verify verify) {
  try {
    const auto store = ShardStore::open(engine, "/a/run", {.verify = verify});
    use(*store);
  } catch (const Error&) {
    // As it should be.
  }
}

}  // namespace
}  // namespace strata::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace strata;
  const auto engine = make_sim_engine({});
  testing::put(engine->file_system(), testing::store_files(std::as_bytes(std::span(data, size))));
  StoreReport(*engine, "/a/run", Verify::reads).text();
  testing::open(*engine, size % 2 == 0 ? Verify::reads : Verify::off);
  return 0;
}
