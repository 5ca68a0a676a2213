#include "comm/nccl/nccl_job.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_communicator.hpp"
#include "comm/nccl/nccl_failure.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// The control line's values are the host's.
class ControlLine {
 public:
  explicit ControlLine(Communicator& control)
      : control_(control), stream_(device_->make_stream("control")) {}

  std::vector<std::int32_t> gather(std::int32_t own) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(control_.world()));
    control_.all_gather({&own, DType::i32, {1}}, {all.data(), DType::i32, {std::ssize(all)}},
                        *stream_);
    return all;
  }
  void broadcast(NcclId& id) {
    control_.broadcast({id.bytes.data(), DType::u8, {std::ssize(id.bytes)}}, 0, *stream_);
  }
  void meet() { control_.barrier(*stream_); }

 private:
  Communicator& control_;
  const std::unique_ptr<Device> device_ = make_host_device({});
  std::unique_ptr<Stream> stream_;
};

class NcclJobOfProcess final : public NcclJob {
 public:
  NcclJobOfProcess(NcclApi* api, NcclTimes times)
      : api_(api),
        times_(std::move(times)),
        version_(api == nullptr ? 0 : usable_nccl_version(*api)) {}
  // All at once: NCCL may end one only together with the others.
  ~NcclJobOfProcess() override {
    for (const auto& link : links_) link->leave();
    for (const auto& link : links_) link->close();
  }

  std::string version() const override {
    return api_ == nullptr ? "" : nccl_version_text(version_);
  }

  void join(RankLinks& links, Device& device, const NcclRankOptions& options) override {
    const std::shared_ptr<Communicator> line = std::move(links.data);
    try {
      links.data = make_nccl_communicator(line, open(line, *links.control, device, options), device,
                                          options);
    } catch (const std::exception& error) {
      line->abort(fmt::format("rank {}: {}", line->rank(), error.what()));
      links.data = make_nccl_communicator(line, nullptr, device, options);  // which refuses all
      throw;
    }
  }

 private:
  std::shared_ptr<NcclLink> open(const std::shared_ptr<Communicator>& line, Communicator& control,
                                 Device& device, const NcclRankOptions& options) {
    if (line->world() == 1) return nullptr;
    ensure(api_ != nullptr);
    check_world(line->world());
    const auto link =
        std::make_shared<NcclLink>(*api_, line, device,
                                   NcclPatience{options.timeout_s, options.watch_s, options.soon_s,
                                                times_.inside_s, times_.clock});
    device.use_on_this_thread();
    ControlLine others(control);
    link->open(agree_on_id(others, control.rank()));
    {
      const std::lock_guard lock(mutex_);
      links_.push_back(link);
    }
    others.meet();  // Who leaves at once does not end those that are not here yet.
    return link;
  }

  static void check_world(int world) {
    if (world <= nccl_ranks_max) return;
    throw ConfigError(
        fmt::format("{} ranks are more than NCCL is used for: at most {}", world, nccl_ranks_max));
  }

  NcclId agree_on_id(ControlLine& others, int rank_of_this) {
    const std::vector<std::int32_t> versions = others.gather(version_);
    for (std::size_t rank = 0; rank < versions.size(); ++rank)
      if (versions[rank] != versions.front())
        throw ConfigError(
            fmt::format("rank {} has NCCL {}, rank 0 has {}: install the same on all hosts", rank,
                        nccl_version_text(versions[rank]), nccl_version_text(versions.front())));
    NcclId id;
    if (rank_of_this == 0) check(*api_, api_->unique_id(id), "ncclGetUniqueId");
    others.broadcast(id);
    return id;
  }

  NcclApi* const api_;
  const NcclTimes times_;
  const int version_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<NcclLink>> links_;  // guarded by mutex_ while ranks join
};

}  // namespace

std::unique_ptr<NcclJob> make_nccl_job(NcclApi* api, NcclTimes times) {
  return std::make_unique<NcclJobOfProcess>(api, std::move(times));
}

NcclFacts nccl_facts(NcclApi& api) {
  NcclFacts facts;
  try {
    facts.version = nccl_version_text(usable_nccl_version(api));
  } catch (const Error& error) {
    facts.failure = error.what();
  }
  return facts;
}

}  // namespace strata
