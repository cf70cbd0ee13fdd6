// The part of a Checker that is about refunds with an id, which are executed at most once.
//
//   the id is used up  →  the refund  →  the id notes which descriptors were refunded
//
// A later refund with the id finds it used up. It is answered as repeated if the note says that
// everything was refunded; otherwise nobody knows what became of the first one, and it is an error.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

namespace {

std::string_view DescribeNoAnswer(NoAnswer why) {
  switch (why) {
    case NoAnswer::kUnreachable:
      return "the shared store cannot be reached";
    case NoAnswer::kBusy:
      return "the shared store, or this key in it, has too many calls at once";
    case NoAnswer::kLocked:
      return "other instances had the lock of the key for longer than store_lock_timeout";
    case NoAnswer::kRefused:
      return "the shared store refuses access to its user";
    case NoAnswer::kDamaged:
      return "the bucket in the shared store is damaged until a reset removes it";
    case NoAnswer::kNotStorable:
      return "the bucket is too large for the shared store";
  }
  return "";
}

std::string LabelOf(const rule::Rule* rule) {
  return rule != nullptr ? fmt::format("rule {}", rule->label()) : "the request's own limit";
}

}  // namespace

// The reason why there is no answer. `rule` is null for a limit that the request brought.
std::string Checker::Unasked(Operation operation, const rule::Rule* rule, bool perhaps_done,
                             NoAnswer why) {
  const std::string of = LabelOf(rule);
  const std::string_view cause = perhaps_done && why == NoAnswer::kUnreachable
                                     ? "the shared store has not answered in time"
                                     : DescribeNoAnswer(why);
  switch (operation) {
    case Operation::kRefund:
      return perhaps_done ? fmt::format("{}: {} may have been refunded", cause, of)
                          : fmt::format("{}: nothing was refunded to {}", cause, of);
    case Operation::kReset:
      return perhaps_done ? fmt::format("{}: the buckets of {} may have been reset", cause, of)
                          : fmt::format("{}: no bucket of {} was reset", cause, of);
    default:
      return fmt::format("{}, and {} then refuses requests", cause, of);
  }
}

// Whether a request of the batch that was not confirmed may have been executed.
bool Checker::PerhapsDone(uint32_t descriptor) const {
  for (size_t k = 0; k < work_->batch.size(); ++k) {
    if (work_->sources[k].descriptor == descriptor && work_->batch[k].settled.perhaps_done)
      return true;
  }
  return false;
}

NoAnswer Checker::WhyUnasked(uint32_t descriptor) const {
  for (size_t k = 0; k < work_->batch.size(); ++k) {
    const Settled& settled = work_->batch[k].settled;
    if (work_->sources[k].descriptor == descriptor && IsDegraded(settled.mode))
      return settled.no_answer;
  }
  return NoAnswer::kUnreachable;
}

// Reads the answer about the id of a refund, which is the first request of the batch. An error if
// the refund must not be executed; if the id was used before, it is not necessary.
absl::Status Checker::ReadRefundId(const Call& call) {
  const Settled& id = work_->batch[0].settled;
  work_->remembered = !IsDegraded(id.mode);
  work_->repeated = !id.decision.allowed;
  for (size_t k = 1; k < work_->batch.size(); ++k) {
    const uint32_t descriptor = work_->sources[k].descriptor;
    const rule::Rule* const rule = work_->matched[descriptor].rule;
    store::TakeRequest& request = work_->batch[k].request;
    // Without the id it could be executed twice.
    if (!work_->remembered)
      return absl::UnavailableError(
          Unasked(Operation::kRefund, rule, id.perhaps_done, id.no_answer));
    if (!work_->repeated) continue;
    const size_t bits = NoteBitsOf(call.request);
    const bool refunded = ((id.decision.remaining >> (descriptor % bits)) & 1) != 0;
    if (!refunded && request.cost > 0) {
      return absl::UnavailableError(
          fmt::format("an earlier refund with this id was not confirmed: {} may have been refunded",
                      LabelOf(rule)));
    }
    request.operation = Operation::kPeek;
    request.cost = 0;
  }
  return absl::OkStatus();
}

// After an error: if certainly nothing was refunded, the id can be used again.
void Checker::ReleaseRefundId(const Call& call) const {
  const auto& batch = work_->batch;
  const bool nothing_done =
      std::all_of(batch.begin() + 1, batch.end(), [](const BatchEntry& entry) {
        return IsDegraded(entry.settled.mode) && !entry.settled.perhaps_done;
      });
  if (nothing_done) GiveBackId(call, batch[0], batch[0].request.cost);
}

}  // namespace headgate::limiter
