#include "headgate/proxy/pool_admission.h"

#include <algorithm>

namespace headgate::proxy {
namespace {

// Requests in flight end within milliseconds, but the shortest Retry-After is a second.
constexpr base::Duration kRetryWhenFull = std::chrono::seconds(1);

std::string_view TextOf(share::Reason reason) {
  switch (reason) {
    case share::Reason::kWithinShare:
    case share::Reason::kAboveShare:
      return "";
    case share::Reason::kShareUsed:
      return "the client has used its share of this cycle";
    case share::Reason::kNeverFits:
      return "the request costs more than the whole capacity";
    case share::Reason::kInFlight:
      return "the upstream has as many requests as it can work on";
    case share::Reason::kNoClient:
      return "the request does not name its client";
    case share::Reason::kTooManyClients:
      return "there are too many clients";
  }
  return "";
}

}  // namespace

AdmissionVerdict PoolAdmission::Admit(std::string_view client, base::Instant now) {
  return Describe(pool_.Admit(client, 1, now));
}

AdmissionVerdict Describe(const share::PoolAnswer& verdict) {
  AdmissionVerdict answer{
      .admitted = verdict.admitted,
      .has_limit = verdict.has_limit,
      .quota = verdict.limit,
      .remaining = verdict.remaining,
      .reset_after = verdict.reset_after,
      .reason = TextOf(verdict.reason),
      .names_no_client = !verdict.admitted && verdict.reason == share::Reason::kNoClient,
      .counted_only = verdict.counted_only,
      .number = verdict.number};
  // A request without a client never passes, however long it waits.
  const bool never = verdict.retry_after == algorithm::kNever || answer.names_no_client;
  if (!verdict.admitted && !never) {
    answer.retry_after = verdict.reason == share::Reason::kInFlight
                             ? std::max(verdict.retry_after, kRetryWhenFull)
                             : verdict.retry_after;
  }
  return answer;
}

bool PoolAdmission::SeesRoom(std::string_view client, base::Instant now) {
  const share::PoolAnswer seen = pool_.Admit(client, 0, now);
  return seen.admitted && (!seen.has_limit || seen.remaining > 0);
}

void PoolAdmission::OnLeft(const Leaving& leaving, base::Instant now) {
  const auto outcome = [&] {
    switch (leaving.how) {
      case Left::kAnswered:
        return capacity::RequestEnd::kAnswered;
      case Left::kFailed:
        return capacity::RequestEnd::kFailed;
      case Left::kUnasked:
        break;
    }
    return capacity::RequestEnd::kLeft;
  }();
  pool_.OnEnd({.number = leaving.number,
               .outcome = outcome,
               .sent_at = leaving.sent_at,
               .was_sent = leaving.was_sent},
              now);
}

}  // namespace headgate::proxy
