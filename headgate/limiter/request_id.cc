#include "headgate/limiter/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/unavailable.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {
namespace {

// The most time that the takes of one request take, one after the other, if a later request asks.
constexpr base::Duration kTakesLastAtMost = std::chrono::seconds(1);

// With more descriptors, some share a bit, which then says that all of them took.
constexpr size_t kNoteBitsMax = 16;

// How many bits of an id's window note what the first request with it did.
size_t NoteBitsOf(const Request& request) {
  const bool is_told = request.tells_takes || request.operation == Operation::kRefund;
  return is_told ? std::min(request.descriptors.size(), kNoteBitsMax) : 0;
}

}  // namespace

absl::Status RequestId::AddTo(const Task& task, RequestBuckets& buckets) {
  const Once& once = task.request.once;
  const uint64_t whole = uint64_t{1} << NoteBitsOf(task.request);
  HEADGATE_ASSIGN_OR_RETURN(window_,
                            task.brought.IdWindow({.algorithm = algorithm::Algorithm::kFixedWindow,
                                                   .requests = whole,
                                                   .period = once.window,
                                                   .align = algorithm::Align::kFirstHit}));
  buckets.AddId({.request = {.key = OnceBucketKey(task.means.store.hash_secret(),
                                                  task.request.domain, once.id),
                             .limit = window_.get(),
                             .cost = whole},
                 .terms = {.on_store_failure = rule::OnStoreFailure::kAllow,
                           .sharing = rule::Sharing::kExact,
                           .remembers_id = true}},
                window_->limit);
  return absl::OkStatus();
}

void RequestId::Read(const Task& task) {
  const Settled& id = task.work.buckets.id().settled;
  repeated_ = !id.decision.allowed;
  remembered_ = !IsDegraded(id.mode);
  if (repeated_) first_passed_at_ = task.now + id.decision.reset_after - task.request.once.window;
}

absl::Status RequestId::ReadOfRefund(const Task& task) {
  RequestBuckets& buckets = task.work.buckets;
  const Settled& id = buckets.id().settled;
  remembered_ = !IsDegraded(id.mode);
  repeated_ = !id.decision.allowed;
  const size_t bits = NoteBitsOf(task.request);
  for (size_t k = 1; k < buckets.size(); ++k) {
    const uint32_t descriptor = buckets.source(k).descriptor;
    const rule::Rule* const rule = task.work.matches.RuleOf(descriptor);
    store::TakeRequest& request = buckets.entry(k).request;
    // Without the id it could be executed twice.
    if (!remembered_) return Unavailable(Operation::kRefund, rule, id.perhaps_done, id.no_answer);
    if (!repeated_) continue;
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

void RequestId::ReleaseRefund(const Task& task) const {
  const RequestBuckets& buckets = task.work.buckets;
  for (size_t k = 1; k < buckets.size(); ++k) {
    const Settled& settled = buckets.entry(k).settled;
    if (!IsDegraded(settled.mode) || settled.perhaps_done) return;
  }
  GiveBack(task, buckets.id(), buckets.id().request.cost);
}

void RequestId::TellIn(Response& response) const {
  response.repeated = repeated_;
  response.remembered = remembered_;
  response.first_passed_at = first_passed_at_;
}

void RequestId::TellTakes(const Task& task, Response& response) const {
  if (repeated_) return TellEarlierTakes(task, response);
  if (!response.allowed) return;
  const RequestBuckets& buckets = task.work.buckets;
  std::vector<bool>& took = response.took;
  std::vector<bool> lacks(took.size(), false);  // whether a limit has not given the cost
  for (size_t k = 0; k < buckets.size(); ++k) {
    const BucketSource& source = buckets.source(k);
    if (source.descriptor == kOfId || source.of_shadow_rollout()) continue;
    const BatchEntry& entry = buckets.entry(k);
    const bool gave = entry.request.operation == task.request.operation && entry.request.cost > 0 &&
                      entry.settled.decision.allowed && !IsDegraded(entry.settled.mode);
    base::Instant& taken_at = response.taken_at[source.descriptor];
    const base::Instant at = task.means.decider.TakenAt(entry);
    taken_at = took[source.descriptor] ? std::min(taken_at, at) : at;
    took[source.descriptor] = true;
    if (!gave) lacks[source.descriptor] = true;
  }
  for (size_t i = 0; i < took.size(); ++i) took[i] = took[i] && !lacks[i];
  if (remembered_) NoteTakes(task, took);
}

// All takes were made before the id was used up, and each is one call to the store.
void RequestId::TellEarlierTakes(const Task& task, Response& response) const {
  const algorithm::Decision& id = task.work.buckets.id().settled.decision;
  const size_t bits = NoteBitsOf(task.request);
  const base::Instant first_passed = id.at + id.reset_after - task.request.once.window;
  const base::Instant taken_at =
      task.means.decider.may_wait() ? first_passed - kTakesLastAtMost : first_passed;
  for (size_t i = 0; i < response.took.size(); ++i) {
    response.took[i] = ((id.remaining >> (i % bits)) & 1) != 0;
    response.taken_at[i] = std::max(base::Instant{0}, taken_at);
  }
}

void RequestId::NoteTakes(const Task& task, const std::vector<bool>& took) const {
  const size_t bits = NoteBitsOf(task.request);
  uint64_t note = (uint64_t{1} << bits) - 1;
  for (size_t i = 0; i < took.size(); ++i) {
    if (!took[i]) note &= ~(uint64_t{1} << (i % bits));
  }
  if (note != 0) GiveBack(task, task.work.buckets.id(), note);
}

// Nobody waits for the answer. If it is lost or late, a later request knows of no take.
void RequestId::GiveBack(const Task& task, const BatchEntry& id, uint64_t amount) const {
  BatchEntry entry = id;
  entry.BecomeUndo();
  entry.request.cost = amount;
  const auto name = [&](size_t, std::string& out) {
    AppendOnceBucket(task.means.naming, task.request.domain, task.request.once.id, out);
  };
  Pending nobody([] {});
  task.means.decider.Decide({&entry, 1}, name, &nobody, task.now);
}

}  // namespace headgate::limiter
