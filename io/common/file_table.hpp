#pragma once
// A FileTable gives the open files of one device queue their ids. An id says which queue, which
// place in its table, and how often the place had been taken before: so that the id of a file that
// is closed does not name the next one in its place.
//
// Thread contract: none of its own; the RequestBoard guards it.

#include <cstdint>
#include <memory>
#include <vector>

#include "io/common/open_file.hpp"

namespace strata {

class FileTable {
 public:
  static constexpr int queues_max = 32;
  static constexpr int files_max = 8192;

  explicit FileTable(int queue);

  FileId add(std::shared_ptr<OpenFile> file);  // Throws SystemError when files_max are open.
  const std::shared_ptr<OpenFile>* find(FileId id) const;  // nullptr when it is not open
  void remove(FileId id);                                  // only of one that find() knows

  // Which queue's table an id is from; 0 for what cannot be an id.
  static int queue_of(FileId id);

 private:
  struct Place {
    std::shared_ptr<OpenFile> file;
    std::int32_t uses = 0;
  };
  FileId id_of(std::size_t place) const;

  const int queue_;
  std::vector<Place> places_;
  std::vector<std::size_t> free_;
};

}  // namespace strata
