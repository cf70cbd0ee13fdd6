#include "headgate/store/cas/cas_store.h"

#include "absl/hash/hash.h"
#include "headgate/store/answer_without_store.h"

namespace headgate::store::cas {

std::vector<std::unique_ptr<CasStore>> CasStore::Make(std::span<const Parts> parts,
                                                      const Context& context) {
  std::vector<std::unique_ptr<CasStore>> stores;
  base::Random random(context.seed);
  for (const Parts& part : parts)
    stores.push_back(std::unique_ptr<CasStore>(new CasStore(part, context, random.Next())));
  for (const auto& store : stores) {
    for (const auto& other : stores) store->all_.push_back(other.get());
  }
  return stores;
}

CasStore::CasStore(const Parts& parts, const Context& context, uint64_t writer_id)
    : loop_(parts.loop),
      context_(context),
      owner_(parts.service, context.clock, writer_id, OptionsOf(parts, context),
             [this] { SetTimer(); }),
      end_of_turn_(loop_, [this] { owner_.Send(); }),
      timer_(loop_, [this] {
        owner_.OnTime();
        SetTimer();
      }) {}

CasOptions CasStore::OptionsOf(const Parts& parts, const Context& context) {
  CasOptions options = context.options;
  if (parts.on_damaged) options.on_damaged = parts.on_damaged;
  return options;
}

void CasStore::Ask(const SharedRequest& request, Done done) {
  if (const auto answer = AnswerWithoutStore(request)) return done(*answer);
  base::Duration timeout = request.timeout.count() > 0 ? request.timeout : owner_.options().timeout;
  if (request.locked && owner_.has_locks()) timeout = owner_.options().lock_timeout;
  CasStore& owner = OwnerOf(request.name);
  if (&owner == this) {
    return AskHere(request.name,
                   std::make_unique<WaitingRequest>(request, Now() + timeout, std::move(done)));
  }
  // Called on the owner's loop.
  Done reply = [this, done = std::move(done)](const SharedAnswer& answer) {
    if (replies_.Put({.answer = answer, .done = done})) loop_.Post([this] { TakeReplies(); });
  };
  AskOwner(owner, request.name,
           std::make_unique<WaitingRequest>(request, Now() + timeout, std::move(reply)));
}

void CasStore::AskPermits(const SharedPermits& request, PermitsDone done) {
  const base::Duration timeout =
      request.timeout.count() > 0 ? request.timeout : owner_.options().timeout;
  CasStore& owner = OwnerOf(request.name);
  if (&owner == this) {
    return AskHere(request.name,
                   std::make_unique<WaitingRequest>(request.ask, Now() + timeout, std::move(done)));
  }
  // Called on the owner's loop.
  PermitsDone reply = [this, done = std::move(done)](const absl::StatusOr<permit::Answer>& answer) {
    if (permits_replies_.Put({.answer = answer, .done = done}))
      loop_.Post([this] { TakePermitsReplies(); });
  };
  AskOwner(owner, request.name,
           std::make_unique<WaitingRequest>(request.ask, Now() + timeout, std::move(reply)));
}

void CasStore::AskOwner(CasStore& owner, std::string_view name,
                        std::unique_ptr<WaitingRequest> request) {
  if (owner.questions_.Put({.name = std::string(name), .request = std::move(request)}))
    owner.loop_.Post([&owner] { owner.TakeQuestions(); });
}

CasStore& CasStore::OwnerOf(std::string_view name) {
  return *all_[absl::HashOf(absl::string_view(name.data(), name.size())) % all_.size()];
}

void CasStore::AskHere(std::string_view name, std::unique_ptr<WaitingRequest> request) {
  owner_.Ask(name, std::move(request));
  loop_.AtEndOfTurn(end_of_turn_);
}

void CasStore::TakeQuestions() {
  for (Question& question : questions_.TakeAll())
    AskHere(question.name, std::move(question.request));
}

void CasStore::TakeReplies() {
  for (const Reply& reply : replies_.TakeAll()) reply.done(reply.answer);
}

void CasStore::TakePermitsReplies() {
  for (const PermitsReply& reply : permits_replies_.TakeAll()) reply.done(reply.answer);
}

void CasStore::SetTimer() {
  const base::BootTime wake = owner_.next_wake();
  if (wake.ns == INT64_MAX) return timer_.Cancel();
  timer_.Set(wake);
}

StoreCounters CasStore::ReadCounters() const {
  const CasCounters& counters = owner_.counters();
  StoreCounters read;
  read.calls_refused = counters.refused.value() + counters.exhausted.value();
  read.calls_timed_out = counters.timed_out.value();
  read.calls_unavailable = counters.unavailable.value();
  read.retries =
      counters.conflicts.value() + counters.throttled.value() + counters.ambiguous_repeated.value();
  read.locks_taken = counters.locks_taken.value();
  read.locks_lost = counters.locks_lost.value();
  read.locks_timed_out = counters.locks_timed_out.value();
  read.calls_damaged = counters.damaged.value();
  read.buckets_replaced_corrupt = counters.replaced_corrupt.value();
  read.buckets_clock_reset = counters.clock_reset.value();
  read.buckets_carried_over = counters.carried_over.value();
  return read;
}

}  // namespace headgate::store::cas
