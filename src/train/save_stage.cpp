#include "train/save_stage.hpp"

#include <exception>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return *error.what() != 0 ? error.what() : "it failed";
  }
  return "";
}

}  // namespace

void SaveStage::start(std::function<void()> work) {
  ensure(!is_busy());
  work_ = std::async(std::launch::async, [work = std::move(work)] { return failure_of(work); });
}

bool SaveStage::is_busy() const {
  return work_.valid() && work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void SaveStage::wait_for(std::chrono::milliseconds patience) const {
  if (work_.valid()) work_.wait_for(patience);
}

const std::string& SaveStage::failure() const {
  static const std::string none;
  return work_.valid() ? work_.get() : none;
}

}  // namespace strata
