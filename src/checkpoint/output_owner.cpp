#include "io/store/folder_owner.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata {
namespace {

class OwnedOutput final : public OutputOwner {
 public:
  OwnedOutput(FileSystem& files, const std::string& directory)
      : owner_(files, directory,
               {".strata-lock", ".strata-owner",
                "wait for its end or stop it, or name another output_dir"}) {}

 private:
  FolderOwner owner_;
};

}  // namespace

std::unique_ptr<OutputOwner> OutputOwner::take(FileSystem& files, const std::string& directory) {
  return std::make_unique<OwnedOutput>(files, directory);
}

}  // namespace strata
