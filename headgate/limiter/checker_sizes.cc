// The part of a Checker that is about limits with a cost by size.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/checker_scratch.h"

namespace headgate::limiter {

algorithm::Cost CostOf(const Request& request, const rule::Descriptor& descriptor,
                       const std::optional<rule::SizeCost>& size) {
  if (descriptor.cost) return *descriptor.cost;
  if (request.operation == Operation::kPeek) return 0;
  if (!size) return 1;
  const bool known = size->of == rule::SizeCost::Of::kRequestBytes && request.request_bytes;
  return known ? size->UnitsOf(*request.request_bytes) : size->reserve();
}

// Denies the request if a debt denies one of its keys. Nothing is taken then. Rules that may be
// overruled are left to MarkDebts.
bool Checker::DenyByDebt(const Call& call, Response& response) {
  const Request& request = call.request;
  const bool asked_before = call.pending != nullptr && !call.pending->empty();
  if (request.operation != Operation::kTake || asked_before) return false;
  bool denied = false;
  for (uint32_t i = 0; i < request.descriptors.size(); ++i) {
    const Matched& matched = scratch_->matched[i];
    const rule::Rule* const rule = matched.rule;
    const rule::Descriptor& descriptor = request.descriptors[i];
    if (rule == nullptr || rule->unlimited || rule->shadow_mode || rule->quota_mode ||
        descriptor.cost)
      continue;
    const std::vector<PublishedLimit>& limits =
        LimitsOf(call.rules.published[rule->index], request.domain, descriptor, matched.match);
    for (size_t k = 0; k < limits.size(); ++k) {
      if (!limits[k].cost) continue;
      const auto debt = limiter_.size_debts_.Find(
          RuleBucketKey(limiter_.store_.hash_secret(), request.domain, descriptor.entries,
                        matched.match, static_cast<uint8_t>(k)));
      if (!debt) continue;
      const algorithm::Limit& limit = limits[k].limit->limit;
      const algorithm::Decision decision =
          DeniedByDebt(limit, *debt, CostOf(request, descriptor, limits[k].cost), call.now);
      DescriptorAnswer& answer = response.descriptors[i];
      if (answer.has_decision() && !Tighter(decision, answer.decision)) continue;
      answer = {.rule = rule, .decision = decision, .limit = &limit};
      answer.outcome = decision.never_fits() ? Outcome::kNeverFits : Outcome::kDenied;
    }
    if (!response.descriptors[i].has_decision()) continue;
    denied = true;
    Observe(call, i, response.descriptors[i].outcome);
  }
  response.allowed = !denied;
  return denied;
}

// A rule in shadow takes nothing for a request that a debt would have denied: its limits are only
// looked at then. Debts change at any time, so what was found is kept with the answers for a
// request that is asked again. False if the request waits.
bool Checker::SpareDebtors(const Call& call, size_t enforced) {
  std::vector<BatchEntry>& batch = scratch_->batch;
  std::vector<Settled>& debtors = scratch_->debtors;
  debtors.assign(batch.size() - enforced, {});
  const auto look = [&] {
    if (!limiter_.size_debts_.any()) return true;
    for (size_t i = enforced; i < batch.size(); ++i) {
      const Scratch::Source& source = scratch_->sources[i];
      if (source.size == nullptr) continue;
      const store::TakeRequest& request = batch[i].request;
      if (const auto debt = limiter_.size_debts_.Find(request.key)) {
        debtors[i - enforced].decision = DeniedByDebt(*source.limit, *debt, request.cost, call.now);
      }
    }
    return true;
  };
  const bool known = call.pending == nullptr
                         ? look()
                         : call.pending->Resume(base::Strided<Settled>(debtors), look);
  if (!known) return false;
  for (size_t first = enforced, end = enforced; first < batch.size(); first = end) {
    end = first + 1;
    while (end < batch.size() && batch[end].request.joined != store::Joined::kNo) ++end;
    const std::span<const Settled> of_rule =
        std::span(debtors).subspan(first - enforced, end - first);
    if (std::all_of(of_rule.begin(), of_rule.end(),
                    [](const Settled& settled) { return settled.decision.allowed; }))
      continue;
    for (size_t i = first; i < end; ++i) {
      batch[i].request.operation = Operation::kPeek;
      batch[i].request.joined = store::Joined::kNo;
    }
  }
  return true;
}

// After the part in shadow was asked.
void Checker::DenyDebtors(size_t enforced) {
  for (size_t i = 0; i < scratch_->debtors.size(); ++i) {
    const algorithm::Decision& denied = scratch_->debtors[i].decision;
    algorithm::Decision& decision = scratch_->batch[enforced + i].settled.decision;
    if (!denied.allowed && decision.allowed) decision = denied;
  }
}

// A debt under a rule in quota mode: the rule denies, and others decide what comes of it.
void Checker::MarkDebts(const Call& call) {
  for (size_t i = 0; i < scratch_->batch.size(); ++i) {
    const Scratch::Source& source = scratch_->sources[i];
    BatchEntry& entry = scratch_->batch[i];
    if (source.size == nullptr || entry.request.operation != Operation::kTake) continue;
    const auto debt = limiter_.size_debts_.Find(entry.request.key);
    if (debt && entry.settled.decision.allowed)
      entry.settled.decision = DeniedByDebt(*source.limit, *debt, entry.request.cost, call.now);
  }
}

void Checker::ConcludeSizes(const Call& call, Response& response) const {
  const std::vector<BatchEntry>& batch = scratch_->batch;
  if (call.request.operation != Operation::kTake || response.repeated) return;
  for (size_t first = 0, end = 0; first < batch.size(); first = end) {
    end = first + 1;
    while (end < batch.size() && batch[end].request.joined != store::Joined::kNo) ++end;
    bool taken = true;
    bool sized = false;
    for (size_t i = first; i < end; ++i) {
      taken = taken && batch[i].settled.decision.allowed;
      sized = sized || scratch_->sources[i].size != nullptr;
    }
    if (!taken || !sized) continue;
    for (size_t i = first; i < end; ++i) {
      const Scratch::Source& source = scratch_->sources[i];
      const Mode mode = batch[i].settled.mode;
      // Looked at only, or let through without the store and not counted.
      const bool uncounted = batch[i].request.operation != Operation::kTake ||
                             mode == Mode::kOpen || mode == Mode::kClosed;
      if (source.size == nullptr || uncounted) continue;
      response.sized.push_back({.descriptor = source.descriptor,
                                .limit_index = source.limit_index,
                                .key = batch[i].request.key,
                                .cost = *source.size,
                                .limit = *source.limit,
                                .taken = batch[i].request.cost,
                                .window_end = call.now + batch[i].settled.decision.reset_after});
    }
  }
}

std::vector<SizeCharge> KeepCharges(const Request& request, const Response& response,
                                    base::Instant now) {
  std::vector<SizeCharge> charges;
  std::shared_ptr<const KeptDescriptor> kept;
  uint32_t kept_index = 0;
  for (const SizeTake& take : response.sized) {
    if (kept == nullptr || kept_index != take.descriptor) {
      kept_index = take.descriptor;
      kept = std::make_shared<const KeptDescriptor>(request.domain,
                                                    request.descriptors[take.descriptor]);
    }
    charges.emplace_back(
        SizedLimit{.descriptor = kept, .limit_index = take.limit_index, .key = take.key}, take,
        now);
  }
  return charges;
}

Corrected Checker::Correct(const SizedLimit& place, Operation operation, algorithm::Cost cost,
                           base::Instant now, Pending* pending) {
  const rule::Descriptor descriptor{.entries = place.descriptor->entries()};
  const Request request{.domain = place.descriptor->domain(),
                        .descriptors = {&descriptor, 1},
                        .operation = operation};
  Corrected corrected;
  const auto rules = BeginRound(request, pending);
  if (!rules.ok()) return corrected;
  Pending* const asked = decider_.may_wait() ? pending : nullptr;
  const Call call{.request = request, .rules = **rules, .pending = asked, .now = now};
  Match(call);
  const Matched& matched = scratch_->matched.front();
  if (matched.rule == nullptr || matched.rule->unlimited) return corrected;
  const PublishedRule& published = call.rules.published[matched.rule->index];
  const bool in_shadow = place.limit_index >= rule::kLimitsPerRuleMax;
  const std::vector<PublishedLimit>& limits =
      in_shadow ? published.shadow : LimitsOf(published, request.domain, descriptor, matched.match);
  const size_t k = place.limit_index - (in_shadow ? rule::kLimitsPerRuleMax : 0);
  if (k >= limits.size() || !limits[k].cost) return corrected;

  const algorithm::Limit& limit = limits[k].limit->limit;
  corrected.known = true;
  corrected.asked = std::min(cost, limit.capacity());
  scratch_->sources.assign({{0, place.limit_index, &limit, &*limits[k].cost}});
  scratch_->batch.assign({{.request = {.key = place.key,
                                       .limit = limits[k].limit.get(),
                                       .history = limits[k].history,
                                       .cost = corrected.asked,
                                       .operation = operation},
                           .terms = decider_.TermsOf(*matched.rule)}});
  corrected.waiting = !DecidePart(call, 0, 1);
  if (corrected.waiting) return corrected;
  corrected.settled = scratch_->batch.front().settled;
  if (asked != nullptr) asked->Forget();
  return corrected;
}

}  // namespace headgate::limiter
