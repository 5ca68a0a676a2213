#pragma once
// The ReadBack of one writer: pieces that are written come back from the drive, on a thread of its
// own, and are compared with their checksums, while others are still on their way. Until the last
// one is written it asks for little of the drive: somebody waits for the writes' memory.
//
// Thread contract: written() from any thread, also from an engine's: it is short and does not
// throw; has_failed() from any; the rest from one.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "piece_reader.hpp"

namespace strata {

// Throws SystemError where the piece could not be read, Error where it is not as it was written.
void need_as_written(const PieceReader& reader, const PieceOutcome& outcome);

class ReadBack {
 public:
  // `files` are those of `vectors` in `folder`, open for reading, and outlive this.
  ReadBack(IoEngine& engine, std::string folder, const std::vector<StateVector>& vectors,
           const VectorFiles& files);
  ~ReadBack();  // gives up what was not yet compared
  ReadBack(const ReadBack&) = delete;
  ReadBack& operator=(const ReadBack&) = delete;

  // A list of one, made beforehand: nothing is allocated here.
  void written(std::list<StatePiece>& piece) noexcept;
  // A piece did not come back as it was written: nothing more is read.
  bool has_failed() const { return has_failed_; }
  // Throws that failure.
  void check() const;
  // Until all that were written() are compared; none comes afterwards. Throws the first failure.
  void finish();

 private:
  // Pieces to be read at one pace; none at the end.
  struct Batch {
    std::vector<StatePiece> pieces;
    ReadPace pace;
  };

  void work();
  Batch take();
  void compare(const Batch& batch);
  void end(bool gives_up);

  const PieceReader reader_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::list<StatePiece> written_;  // and not yet taken
  bool is_last_ = false;           // no more will be written
  bool gives_up_ = false;          // nobody wants to know

  std::exception_ptr failure_;  // constant once it has failed
  std::atomic<bool> has_failed_ = false;

  std::thread thread_;
};

}  // namespace strata
