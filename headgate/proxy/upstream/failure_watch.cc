#include "headgate/proxy/upstream/failure_watch.h"

#include <utility>

namespace headgate::proxy::upstream {

void FailureWatch::OnConnectFailed(std::string_view reason) {
  const std::lock_guard lock(mutex_);
  connect_failure_.assign(reason);
}

std::string FailureWatch::ReasonOf(const Counts& counts) {
  if (counts.unreachable > before_.unreachable) {
    const std::lock_guard lock(mutex_);
    return connect_failure_.empty() ? "no connection could be made" : connect_failure_;
  }
  if (counts.broken > before_.broken)
    return "a connection ended before the answer, or carried something else";
  return "an answer did not come in time";
}

void FailureWatch::Step(const Counts& counts, base::Instant now) {
  const uint64_t failed = counts.unreachable + counts.broken + counts.too_slow;
  const observe::DegradedWatch::Change change = failing_.Look(failed, counts.answered, now);
  if (change == observe::DegradedWatch::Change::kBegan) {
    log_.Warning(
        "upstream.failed",
        {{"reason", ReasonOf(counts)},
         {"effect", std::string_view("requests are answered 502 or 504")},
         {"hint", std::string_view("check that the service runs and that --upstream has its "
                                   "address; headgate_proxy_requests_total counts its failures")}});
  } else if (change == observe::DegradedWatch::Change::kEnded) {
    log_.Info("upstream.recovered",
              {{"requests_failed", failing_.decided()}, {"for", failing_.lasted()}});
  }
  before_ = counts;
}

}  // namespace headgate::proxy::upstream
