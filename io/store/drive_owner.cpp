#include "strata/io/store/drive_owner.hpp"

#include <vector>

#include "io/store/folder_owner.hpp"

namespace strata {
namespace {

FolderUse folder_use(DriveUse use) {
  return {".strata-nvme-lock", ".strata-nvme-owner",
          use == DriveUse::run
              ? "wait for its end or stop it, or name another folder in offload.nvme_paths"
              : "a benchmark now would disturb it, and tell too little of the drive. Wait for its "
                "end, or name a folder on another drive"};
}

class OwnedDrives final : public DriveOwner {
 public:
  OwnedDrives(FileSystem& files, std::span<const std::string> directories, DriveUse use) {
    for (const std::string& directory : directories)
      owners_.push_back(std::make_unique<FolderOwner>(files, directory, folder_use(use)));
  }

 private:
  std::vector<std::unique_ptr<FolderOwner>> owners_;
};

}  // namespace

std::unique_ptr<DriveOwner> DriveOwner::take(FileSystem& files,
                                             std::span<const std::string> directories,
                                             DriveUse use) {
  return std::make_unique<OwnedDrives>(files, directories, use);
}

std::string drive_user(FileSystem& files, const std::string& directory) {
  return folder_user(files, directory, folder_use(DriveUse::run));
}

}  // namespace strata
