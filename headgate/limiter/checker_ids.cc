// The part of a Checker that is about the ids of requests. An id is a window that begins with the
// first request that passes, and has room for no other.
//
// It also remembers what that request took, if the caller wants to know. With n descriptors:
//
//   each request   takes 2^n, which is all that the window has
//   the first one  gives back 2^i if the limits of descriptor i gave its cost
//   a later one    is denied, and reads this in what the window has left
//
// A refund with an id does the same (checker_refunds.cc).
//
// Nobody waits for what is given back. If it is lost or late, a later request knows of no take.
#include <algorithm>
#include <string>
#include <vector>

#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {

namespace {

constexpr size_t kOnceLimitsCachedMax = 64;
// The most time that the takes of one request take, one after the other, if a later request asks.
constexpr base::Duration kTakesLastAtMost = std::chrono::seconds(1);

// With more descriptors, some share a bit, which then says that all of them took.
constexpr size_t kNoteBitsMax = 16;

}  // namespace

size_t NoteBitsOf(const Request& request) {
  const bool is_told = request.tells_takes || request.operation == Operation::kRefund;
  return is_told ? std::min(request.descriptors.size(), kNoteBitsMax) : 0;
}

// If the store is unreachable, it remembers nothing, and the request is decided like any other.
absl::Status Checker::AddOnce(const Call& call) {
  const Once& once = call.request.once;
  const uint64_t whole = uint64_t{1} << NoteBitsOf(call.request);
  HEADGATE_ASSIGN_OR_RETURN(work_->once_limit,
                            OnceLimit({.algorithm = algorithm::Algorithm::kFixedWindow,
                                       .requests = whole,
                                       .period = once.window,
                                       .align = algorithm::Align::kFirstHit}));
  work_->batch.push_back({.request = {.key = OnceBucketKey(limiter_.store_.hash_secret(),
                                                           call.request.domain, once.id),
                                      .limit = work_->once_limit.get(),
                                      .cost = whole},
                          .terms = {.on_store_failure = rule::OnStoreFailure::kAllow,
                                    .sharing = rule::Sharing::kExact,
                                    .remembers_id = true}});
  work_->sources.push_back({kOfOnce, 0, &work_->once_limit->limit});
  return absl::OkStatus();
}

// Reads the answer about the id of a request to pass, which is the first of the group.
void Checker::ReadId(const Call& call) {
  const Settled& id = work_->batch[work_->group].settled;
  work_->repeated = !id.decision.allowed;
  work_->remembered = !IsDegraded(id.mode);
  if (work_->repeated)
    work_->first_passed_at = call.now + id.decision.reset_after - call.request.once.window;
}

absl::StatusOr<store::LimitHandle> Checker::OnceLimit(const algorithm::LimitSpec& spec) {
  auto& cache = caches_->once_limits;
  if (const auto found = cache.find(spec); found != cache.end()) return found->second;
  HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit made, algorithm::Limit::Make(spec));
  HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle, limiter_.store_.limits().Intern(made));
  if (cache.size() >= kOnceLimitsCachedMax) cache.clear();
  cache.emplace(spec, handle);
  return handle;
}

// `id` is the bucket of the request's id; null if it has none.
void Checker::TellTakes(const Call& call, const BatchEntry* id, Response& response) const {
  std::vector<bool>& took = response.took;
  if (response.repeated) {
    const uint64_t note = id->settled.decision.remaining;
    const size_t bits = NoteBitsOf(call.request);
    // All takes were made before the id was used up, and each is one call to the store.
    const base::Instant first_passed =
        id->settled.decision.at + id->settled.decision.reset_after - call.request.once.window;
    const base::Instant taken_at =
        decider_.may_wait() ? first_passed - kTakesLastAtMost : first_passed;
    for (size_t i = 0; i < took.size(); ++i) {
      took[i] = ((note >> (i % bits)) & 1) != 0;
      response.taken_at[i] = std::max(base::Instant{0}, taken_at);
    }
    return;
  }
  if (!response.allowed) return;
  std::vector<bool> lacks(took.size(), false);  // whether a limit has not given the cost
  for (size_t k = 0; k < work_->batch.size(); ++k) {
    const Work::Source& source = work_->sources[k];
    if (source.descriptor == kOfOnce || source.of_shadow_rollout()) continue;
    const BatchEntry& entry = work_->batch[k];
    const bool gave = entry.request.operation == call.request.operation && entry.request.cost > 0 &&
                      entry.settled.decision.allowed && !IsDegraded(entry.settled.mode);
    base::Instant& taken_at = response.taken_at[source.descriptor];
    const base::Instant at = decider_.TakenAt(entry);
    taken_at = took[source.descriptor] ? std::min(taken_at, at) : at;
    took[source.descriptor] = true;
    if (!gave) lacks[source.descriptor] = true;
  }
  for (size_t i = 0; i < took.size(); ++i) took[i] = took[i] && !lacks[i];
  if (id != nullptr && response.remembered) NoteTakes(call, *id, took);
}

void Checker::NoteTakes(const Call& call, const BatchEntry& id,
                        const std::vector<bool>& took) const {
  const size_t bits = NoteBitsOf(call.request);
  uint64_t note = (uint64_t{1} << bits) - 1;
  for (size_t i = 0; i < took.size(); ++i) {
    if (!took[i]) note &= ~(uint64_t{1} << (i % bits));
  }
  if (note != 0) GiveBackId(call, id, note);
}

// Nobody waits for the answer.
void Checker::GiveBackId(const Call& call, const BatchEntry& id, uint64_t amount) const {
  BatchEntry entry = id;
  entry.BecomeUndo();
  entry.request.cost = amount;
  entry.request.joined = store::Joined::kNo;
  const auto name = [&](size_t, std::string& out) {
    AppendOnceBucket(naming_, call.request.domain, call.request.once.id, out);
  };
  Pending nobody([] {});
  decider_.Decide({&entry, 1}, name, &nobody, call.now);
}

}  // namespace headgate::limiter
