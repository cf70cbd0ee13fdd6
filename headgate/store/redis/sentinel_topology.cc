#include "headgate/store/redis/sentinel_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/wire/resp_number.h"

namespace headgate::store::redis {
namespace {

// The shortest interval between queries, however many failures there are.
constexpr base::Duration kSentinelPauseMin = std::chrono::milliseconds(200);
// Added jitter, so that a fleet does not ask together.
constexpr base::Duration kSentinelSpread = std::chrono::milliseconds(50);
// The interval of queries without any failure, because a primary that was cut off does not know
// that it was replaced.
constexpr base::Duration kSentinelInterval = std::chrono::seconds(1);

}  // namespace

SentinelTopology::SentinelTopology(const std::vector<net::StreamTarget>& sentinels,
                                   std::string master_name, uint64_t seed)
    : Topology(sentinels),
      sentinel_count_(static_cast<uint32_t>(sentinels.size())),
      master_name_(std::move(master_name)),
      random_(seed),
      asked_(sentinel_count_ - 1) {}

void SentinelTopology::OnSuspicion(base::BootTime now) {
  const base::Duration spread(
      static_cast<int64_t>(random_.Below(static_cast<uint64_t>(kSentinelSpread.count()))));
  ask_at_ = std::min(ask_at_, std::max(now, asked_at_ + kSentinelPauseMin) + spread);
  suspected_ = true;
}

std::optional<Topology::Query> SentinelTopology::Ask(base::BootTime now) {
  if (now < ask_at_) return std::nullopt;
  // Asks another sentinel than last time: a sentinel that was cut off names the old master forever.
  if (std::exchange(suspected_, false)) asked_ = (asked_ + 1) % sentinel_count_;
  asked_at_ = now;
  ask_at_ = now + random_.Jitter(kSentinelInterval, 20);
  return Query{.server = asked_, .words = {"SENTINEL", "get-master-addr-by-name", master_name_}};
}

bool SentinelTopology::OnAnswer(const wire::RespValue& answer, base::BootTime now) {
  problem_.clear();
  std::optional<int64_t> port;
  if (answer.kind == wire::RespValue::Kind::kArray && answer.items.size() == 2) {
    port = wire::RespNumber(answer.items[1].text);
  }
  if (!port || *port < 1 || *port > 65535 || answer.items[0].text.empty()) {
    problem_ = answer.kind == wire::RespValue::Kind::kNull
                   ? fmt::format("it does not know the master '{}'", master_name_)
                   : fmt::format("its answer is not an address: {}", answer.ToString());
    OnNoAnswer(now);
    return false;
  }
  const std::optional<uint32_t> master =
      IndexOf({.host = answer.items[0].text, .port = static_cast<uint16_t>(*port)});
  if (!master || master == master_) return false;
  master_ = master;
  return true;
}

void SentinelTopology::OnNoAnswer(base::BootTime now) { OnSuspicion(now); }

}  // namespace headgate::store::redis
