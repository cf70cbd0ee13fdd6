#include "headgate/gate/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/answer/tightest.h"
#include "headgate/base/text.h"
#include "headgate/wire/origin.h"

namespace headgate::gate {
namespace {

constexpr int kUntrustedStatus = 403;

int64_t UnixSeconds(base::WallTime now) { return now.ns / 1'000'000'000; }

// The time until the turn of a request that is allowed.
base::Duration WaitOf(const limiter::Response& decided) {
  base::Duration wait{0};
  for (const limiter::DescriptorAnswer& answer : decided.descriptors) {
    if (answer.allowed() && answer.has_decision()) wait = std::max(wait, answer.decision.wait);
  }
  return wait;
}

// Turns a request into a peek that is decided as this take would be; TakeOf turns it back.
limiter::Request PeekOf(limiter::Request request) {
  request.operation = limiter::Operation::kPeek;
  request.peeks_as_take = true;
  request.skips_permits = true;
  request.permits = nullptr;
  return request;
}
limiter::Request TakeOf(limiter::Request peek, limiter::PermitHold* permits) {
  peek.operation = limiter::Operation::kTake;
  peek.peeks_as_take = false;
  peek.skips_permits = false;
  peek.permits = permits;
  return peek;
}

}  // namespace

OutcomeAndStatus OutcomeOf(const mapping::MappedRequest& mapped) {
  using mapping::MappedAs;
  switch (mapped.as) {
    case MappedAs::kUnmatched:
      return {RequestOutcome::kUnmatched, 200};
    case MappedAs::kExempt:
      return {RequestOutcome::kExempt, 200};
    case MappedAs::kPreflight:
      return {RequestOutcome::kPreflight, 200};
    case MappedAs::kRefused:
      return {RequestOutcome::kRefused, mapped.mapping->statuses.refused};
    case MappedAs::kMissing:
      return {RequestOutcome::kMissing, mapped.mapping->statuses.missing};
    case MappedAs::kInvalid:
      return {RequestOutcome::kInvalid, mapped.mapping->statuses.invalid};
    case MappedAs::kDescriptors:
      break;
  }
  // Without any descriptor no rule applies.
  if (mapped.descriptors.empty() && mapped.mapping->require_rule)
    return {RequestOutcome::kNoRule, mapped.mapping->statuses.no_rule};
  return {RequestOutcome::kAllowed, 200};
}

const mapping::MappingSet* Judge::mappings() {
  if (options_.mappings.generation() != generation_) {
    generation_ = options_.mappings.generation();
    std::shared_ptr<const mapping::MappingSet> set = options_.mappings.set();
    mapper_.Use(*set);
    set_ = std::move(set);
  }
  return set_.get();
}

bool Judge::Decide(const mapping::DescribedRequest& request, absl::FunctionRef<Asked&()> make_asked,
                   base::Instant now, Verdict& verdict, const WaitBound& bound) {
  verdict = {};
  charges_.clear();
  permits_ = {};
  const mapping::MappingSet* const set = mappings();
  has_read_path_ = false;
  if (set == nullptr || (!options_.is_own_proxy && !set->Trusts(request))) {
    verdict.outcome = RequestOutcome::kUntrusted;
    verdict.status = kUntrustedStatus;
    Close(verdict);
    return true;
  }
  SetCors(request, verdict);
  const mapping::MappedRequest mapped = mapper_.Map(request, UnixSeconds(options_.clock.WallNow()));
  has_read_path_ = mapped.has_read_path;
  Judged(mapped, verdict);
  if (mapped.as != mapping::MappedAs::kDescriptors || mapped.descriptors.empty()) {
    Close(verdict);
    return true;
  }
  std::string_view id_text;
  if (FindId(request, id_text) == wire::Lookup::kTwice) {
    verdict.outcome = RequestOutcome::kInvalid;
    verdict.status = mapped.mapping->statuses.invalid;
    verdict.detail = fmt::format("header {} comes twice", set_->idempotency_header);
    Close(verdict);
    return true;
  }
  const bool has_id = !id_text.empty();
  const base::Hash128 id = has_id ? IdOf(id_text, mapped) : base::Hash128{};
  if (has_id && options_.repeats.Find(id, now, verdict, policy_)) {
    counters_.repeated.Add();
    SetCors(request, verdict);
    LetPass(verdict);
    return true;
  }
  Asked* const asked = checker_.may_wait() ? &make_asked() : nullptr;
  limiter::Question* const question = asked == nullptr ? nullptr : &asked->question;
  const limiter::Request take{.domain = mapped.mapping->domain,
                              .descriptors = mapped.descriptors,
                              .request_bytes = request.body_bytes,
                              .permits = HoldFor(asked),
                              // While it waits for the store, the pool may fill up.
                              .may_stay_unsent = options_.is_own_proxy};
  const mapping::Mapping& mapping = *mapped.mapping;
  bool peeks = bound.peeks && MayQueue(take);
  bool waits = false;
  if (peeks) {
    const limiter::Request peek = PeekOf(take);
    const absl::Status status = checker_.Check(peek, decided_, now, question);
    waits = IsWaiting(status);
    if (!waits && EndsAtPeek(status, peek, mapping, bound.wait_max, now, verdict)) return true;
    peeks = waits;
  }
  if (!waits) {
    const absl::Status status = checker_.Check(take, decided_, now, question);
    waits = IsWaiting(status);
    if (!waits) Answer(status, take, mapping, asked, now, verdict);
  }
  if (waits) {
    asked->peeks = peeks;
    asked->set = set_;
    asked->mapping = &mapping;
    asked->has_id = has_id;
    asked->id = id;
    asked->cors_origin = verdict.cors_origin;
    asked->varies_by_origin = verdict.varies_by_origin;
    return false;
  }
  if (has_id) options_.repeats.Remember(id, verdict, now);
  return true;
}

void Judge::RefuseHead(const mapping::DescribedRequest& request, std::string_view why,
                       Verdict& verdict) {
  const mapping::MappingSet* const set = mappings();
  const bool has_status = set != nullptr && !set->mappings.empty();
  verdict = {};
  if (set != nullptr) SetCors(request, verdict);
  verdict.outcome = RequestOutcome::kInvalid;
  verdict.status = (has_status ? set->mappings.front().statuses : mapping::Statuses()).invalid;
  verdict.detail = why;
  Close(verdict);
}

void Judge::RefuseBusy(Verdict& verdict) {
  verdict = {};
  verdict.outcome = RequestOutcome::kUnavailable;
  verdict.status = mapping::Statuses().unavailable;
  Close(verdict);
}

bool Judge::Continue(Asked& asked, base::Instant now, Verdict& verdict, base::Duration wait_max) {
  verdict = {};
  verdict.cors_origin = asked.cors_origin;
  verdict.varies_by_origin = asked.varies_by_origin;
  limiter::Question& question = asked.question;
  absl::Status status = checker_.Continue(question, decided_, now);
  if (IsWaiting(status)) return false;
  if (std::exchange(asked.peeks, false)) {
    if (EndsAtPeek(status, question.request(), *asked.mapping, wait_max, now, verdict)) {
      asked.set = nullptr;
      return true;
    }
    status = checker_.Check(TakeOf(question.request(), HoldFor(&asked)), decided_, now, &question);
    if (IsWaiting(status)) return false;
  }
  Answer(status, question.request(), *asked.mapping, &asked, now, verdict);
  if (asked.has_id) options_.repeats.Remember(asked.id, verdict, now);
  asked.set = nullptr;
  return true;
}

void Judge::Judged(const mapping::MappedRequest& mapped, Verdict& verdict) {
  if (const jwt::Refusal refusal = mapped.token_refusal; refusal != jwt::Refusal::kNone) {
    counters_.token_refusals[static_cast<size_t>(refusal)].Add();
    if (options_.on_token_refused) options_.on_token_refused(refusal, mapped.mapping->name);
  }
  const auto [outcome, status] = OutcomeOf(mapped);
  verdict.outcome = outcome;
  verdict.status = status;
  if (outcome != RequestOutcome::kMissing && outcome != RequestOutcome::kInvalid) return;
  verdict.detail = DescribeProblem(mapped);
  if (outcome == RequestOutcome::kInvalid && options_.on_invalid)
    options_.on_invalid(verdict.detail, mapped.mapping->name);
  verdict.lacks_bearer = LacksBearer(mapped);
  if (mapped.lacks_valid_token()) verdict.token_refusal = mapped.token_refusal;
}

void Judge::SetCors(const mapping::DescribedRequest& request, Verdict& verdict) const {
  if (set_->cors_origins.empty()) return;
  std::string_view sent;
  const bool is_sole = request.FindField("Origin", sent) == wire::Lookup::kFound;
  const wire::AllowedOrigin allowed = wire::FindAllowedOrigin(
      set_->cors_origins, is_sole ? std::optional<std::string_view>(sent) : std::nullopt);
  verdict.cors_origin = allowed.origin;
  verdict.varies_by_origin = allowed.varies;
}

bool Judge::LacksBearer(const mapping::MappedRequest& mapped) const {
  if (mapped.as != mapping::MappedAs::kMissing || mapped.source == nullptr ||
      mapped.source->kind != mapping::AttributeKind::kClaim) {
    return false;
  }
  const mapping::TokenIssuer& issuer = set_->issuers[mapped.source->issuer];
  return issuer.cookie.empty() && base::EqualsIgnoreCase(issuer.header, "Authorization");
}

wire::Lookup Judge::FindId(const mapping::DescribedRequest& request, std::string_view& id) const {
  const std::string& name = set_->idempotency_header;
  // If clients could choose ids, they could have many requests counted as one.
  if (name.empty() || !set_->attributes.Believes(request)) return wire::Lookup::kAbsent;
  return request.FindField(name, id);
}

base::Hash128 Judge::IdOf(std::string_view text, const mapping::MappedRequest& mapped) const {
  // An id counts once for each set of buckets, so the descriptors are part of the hash. Each
  // descriptor has a hasher of its own, because one hasher takes at most kPartsMax parts.
  base::KeyHasher hasher(options_.secret, base::KeyKind::kRaw);
  hasher.Add(text);
  hasher.Add(mapped.mapping->domain);
  for (const rule::Descriptor& descriptor : mapped.descriptors) {
    base::KeyHasher part(options_.secret, base::KeyKind::kPart);
    for (const rule::Entry& entry : descriptor.entries) {
      part.Add(entry.key);
      part.Add(entry.value);
    }
    const base::Hash128 hash = part.Finish();
    hasher.Add({static_cast<const char*>(static_cast<const void*>(&hash)), sizeof(hash)});
  }
  return hasher.Finish();
}

bool Judge::MayQueue(const limiter::Request& request) {
  const rule::RuleSet* const rules = checker_.rules();
  if (rules == nullptr) return false;
  const auto is_queue = [](const rule::RuleLimit& limit) {
    return IsQueue(limit.limit.algorithm());
  };
  return std::any_of(
      request.descriptors.begin(), request.descriptors.end(),
      [&](const rule::Descriptor& descriptor) {
        rule::Match match;
        (void)rules->Find(request.domain, descriptor.entries, match);
        const rule::Rule* const rule = match.rule;
        if (rule == nullptr) return false;
        return std::any_of(rule->limits.begin(), rule->limits.end(), is_queue) ||
               (rule->rollout != nullptr &&
                std::any_of(rule->rollout->limits.begin(), rule->rollout->limits.end(), is_queue));
      });
}

// A peek that is denied or fails is not the answer: the take that follows is denied too, and
// counted.
bool Judge::EndsAtPeek(const absl::Status& status, const limiter::Request& peek,
                       const mapping::Mapping& mapping, base::Duration wait_max, base::Instant now,
                       Verdict& verdict) {
  if (!status.ok() || !decided_.allowed || WaitOf(decided_) <= wait_max) return false;
  Conclude(peek, mapping, now, verdict);
  verdict.only_peeked = true;
  Close(verdict);
  return true;
}

void Judge::Answer(const absl::Status& status, const limiter::Request& request,
                   const mapping::Mapping& mapping, Asked* asked, base::Instant now,
                   Verdict& verdict) {
  if (asked != nullptr) permits_ = std::move(asked->permits);
  if (!decided_.sized.empty() && options_.is_own_proxy) [[unlikely]]
    charges_ = limiter::KeepCharges(request, decided_);
  if (status.ok()) {
    Conclude(request, mapping, now, verdict);
  } else {
    const bool invalid = status.code() == absl::StatusCode::kInvalidArgument;
    verdict.outcome = invalid ? RequestOutcome::kInvalid : RequestOutcome::kUnavailable;
    verdict.status = invalid ? mapping.statuses.invalid : mapping.statuses.unavailable;
    verdict.detail = std::string(status.message());
  }
  Close(verdict);
}

void Judge::Conclude(const limiter::Request& request, const mapping::Mapping& mapping,
                     base::Instant now, Verdict& verdict) {
  verdict.mode = answer::ModeOf(decided_);
  if (mapping.require_rule && !limiter::AnyRule(decided_)) {
    verdict.outcome = RequestOutcome::kNoRule;
    verdict.status = mapping.statuses.no_rule;
    return;
  }
  verdict.outcome = decided_.allowed ? RequestOutcome::kAllowed : RequestOutcome::kDenied;
  verdict.status = decided_.allowed ? 200 : mapping.statuses.denied;
  verdict.limit = answer_.StateOf(request, 1, decided_, now);
  if (verdict.limit && !verdict.limit->dialect) verdict.limit->dialect = mapping.rate_limit_fields;
  if (!decided_.allowed) verdict.refusal = RefusalOf(mapping);
  if (decided_.allowed) verdict.wait = WaitOf(decided_);
  if (decided_.passed_despite) {
    const bool denied = decided_.passed_despite == limiter::Outcome::kDenied;
    verdict.outcome = denied ? RequestOutcome::kDenied : RequestOutcome::kUnavailable;
  }
}

std::shared_ptr<const rule::Refusal> Judge::RefusalOf(const mapping::Mapping& mapping) const {
  std::shared_ptr<const rule::Refusal> of_rule = answer::RefusalOf(decided_);
  if (of_rule != nullptr) return of_rule;
  return mapping.refusal != nullptr ? mapping.refusal : answer_.refusal();
}

void Judge::Close(Verdict& verdict) {
  counters_.outcomes[static_cast<size_t>(verdict.outcome)].Add();
  LetPass(verdict);
}

void Judge::LetPass(Verdict& verdict) const {
  if (Passes(verdict.outcome) || !checker_.passthrough()) return;
  if (verdict.limit) {
    verdict.limit->denied = false;
    verdict.limit->retry_after.reset();
  }
  verdict.outcome = RequestOutcome::kPassthrough;
  verdict.status = 200;
  verdict.wait = base::Duration(0);
  verdict.detail.clear();
  verdict.lacks_bearer = false;
}

}  // namespace headgate::gate
