#include "headgate/front/resp/rule_verbs.h"

#include <algorithm>
#include <limits>

#include "headgate/base/check.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/permit/permit.h"
#include "headgate/rule/request_content.h"
#include "headgate/wire/bound_id.h"
#include "headgate/wire/permit_id.h"

namespace headgate::front::resp {
namespace {

int64_t MillisecondsUp(base::Duration d) {
  return std::chrono::ceil<std::chrono::milliseconds>(d).count();
}

// RESP integers have 63 bits and a sign; a limit can be larger.
int64_t Saturated(uint64_t n) {
  return static_cast<int64_t>(std::min(n, uint64_t{std::numeric_limits<int64_t>::max()}));
}

void WriteOutcome(const limiter::DescriptorAnswer& outcome, wire::RespWriter& reply) {
  const algorithm::Decision& decision = outcome.decision;
  const bool decided = outcome.has_decision();
  const bool shared = outcome.mode != limiter::Mode::kMemory;
  const bool blocked = decided && decision.blocked();
  reply.Map(8u + (shared ? 1 : 0) + (blocked ? 1 : 0));
  reply.Bulk("allowed");
  reply.Boolean(outcome.allowed());
  reply.Bulk("limit");
  decided ? reply.Integer(Saturated(decision.limit)) : reply.Null();
  reply.Bulk("remaining");
  decided ? reply.Integer(Saturated(decision.remaining)) : reply.Null();
  reply.Bulk("retry_after_ms");
  decided&& decision.never_fits() ? reply.Null()
                                  : reply.Integer(MillisecondsUp(decision.retry_after));
  reply.Bulk("reset_after_ms");
  reply.Integer(MillisecondsUp(decision.reset_after));
  reply.Bulk("wait_ms");
  reply.Integer(MillisecondsUp(decision.wait));
  reply.Bulk("rule");
  outcome.rule != nullptr ? reply.Bulk(outcome.rule->label()) : reply.Null();
  reply.Bulk("shadow");
  reply.Boolean(outcome.rule != nullptr && outcome.rule->shadow_mode);
  if (shared) {
    reply.Bulk("mode");
    reply.Bulk(Name(outcome.mode));
  }
  if (!blocked) return;
  reply.Bulk("blocked_ms");
  reply.Integer(MillisecondsUp(decision.blocked_for));
}

// The fields `allowed` and `decisions`.
void WriteDecisions(const limiter::Response& response, wire::RespWriter& reply) {
  reply.Bulk("allowed");
  reply.Boolean(response.allowed);
  reply.Bulk("decisions");
  reply.Array(response.descriptors.size());
  for (const limiter::DescriptorAnswer& outcome : response.descriptors)
    WriteOutcome(outcome, reply);
}

void WriteInFlight(uint64_t in_flight, uint64_t limit, wire::RespWriter& reply) {
  reply.Bulk("in_flight");
  reply.Integer(Saturated(in_flight));
  reply.Bulk("limit");
  reply.Integer(Saturated(limit));
}

void WriteNothingInFlight(wire::RespWriter& reply) {
  reply.Bulk("in_flight");
  reply.Null();
  reply.Bulk("limit");
  reply.Null();
}

void WriteAcquired(const limiter::Response& response, std::string_view id,
                   wire::RespWriter& reply) {
  reply.Map(6);
  WriteDecisions(response, reply);
  reply.Bulk("id");
  reply.Bulk(id);
  const auto& concurrency = response.concurrency;
  concurrency ? WriteInFlight(concurrency->in_flight, concurrency->max, reply)
              : WriteNothingInFlight(reply);
  reply.Bulk("expires_in_ms");
  const bool has_permit = response.allowed && concurrency && concurrency->ttl > base::Duration(0);
  has_permit
      ? reply.Integer(std::chrono::floor<std::chrono::milliseconds>(concurrency->ttl).count())
      : reply.Null();
}

void WriteReleased(const limiter::Released& answer, wire::RespWriter& reply) {
  using OfDescriptor = limiter::Released::OfDescriptor;
  reply.Map(2);
  reply.Bulk("released");
  reply.Boolean(std::any_of(answer.descriptors.begin(), answer.descriptors.end(),
                            [](const OfDescriptor& released) { return released.was_held; }));
  reply.Bulk("permits");
  reply.Array(answer.descriptors.size());
  for (const OfDescriptor& released : answer.descriptors) {
    const algorithm::Decision& decision = released.decision;
    reply.Map(4);
    reply.Bulk("released");
    reply.Boolean(released.was_held);
    released.rule != nullptr ? WriteInFlight(released.in_flight, decision.limit, reply)
                             : WriteNothingInFlight(reply);
    reply.Bulk("rule");
    released.rule != nullptr ? reply.Bulk(released.rule->label()) : reply.Null();
  }
}

limiter::Operation OperationOf(RuleVerb verb) {
  switch (verb) {
    case RuleVerb::kCheck:
      return limiter::Operation::kTake;
    case RuleVerb::kPeek:
      return limiter::Operation::kPeek;
    case RuleVerb::kRefund:
      return limiter::Operation::kRefund;
    case RuleVerb::kReset:
      return limiter::Operation::kReset;
    case RuleVerb::kAcquire:
    case RuleVerb::kRelease:
      break;  // these are not operations on buckets
  }
  HEADGATE_CHECK(false);
  __builtin_unreachable();
}

}  // namespace

CommandKind KindOf(RuleVerb verb) {
  switch (verb) {
    case RuleVerb::kCheck:
    case RuleVerb::kPeek:
      return CommandKind::kCheck;
    case RuleVerb::kRefund:
    case RuleVerb::kReset:
      return CommandKind::kChange;
    case RuleVerb::kAcquire:
      return CommandKind::kAcquire;
    case RuleVerb::kRelease:
      return CommandKind::kRelease;
  }
  __builtin_unreachable();
}

// A command whose answer comes later.
class RuleVerbs::Late final : public LateReply {
 public:
  Late(RuleVerbs& verbs, CommandKind kind) : LateReply(kind), verbs_(verbs) {}

  Answered Write(std::string& output, base::Instant now) override {
    if (question.waiting()) return Answered::kLater;
    limiter::Checker& checker = verbs_.checker_;
    const absl::Status status = verb == RuleVerb::kRelease
                                    ? checker.ContinueRelease(question, verbs_.released_, now)
                                    : checker.Continue(question, verbs_.response_, now);
    return verbs_.Reply(*this, status, output);
  }
  std::unique_ptr<Acquiring> TakePermit() override { return std::move(acquiring); }
  bool acquires() const override { return acquiring != nullptr; }
  size_t kept_bytes() const override { return question.kept_bytes(); }

  limiter::Question question{[this] { Wake(); }};
  RuleVerb verb{};
  wire::RespVersion version{};
  std::unique_ptr<Acquiring> acquiring;

 private:
  RuleVerbs& verbs_;
};

RuleVerbs::RuleVerbs(limiter::Checker& checker) : checker_(checker) {}

RuleVerbs::~RuleVerbs() = default;

Answered RuleVerbs::Answer(RuleVerb verb, const wire::RespParser& command,
                           wire::RespVersion version, const Turn& turn) {
  if (next_ == nullptr || next_->kind() != KindOf(verb))
    next_ = std::make_unique<Late>(*this, KindOf(verb));
  next_->verb = verb;
  next_->version = version;
  const Answered answered = Reply(*next_, Ask(verb, command, *next_, turn.now), turn.output);
  if (answered == Answered::kLater) {
    turn.queue.Add(std::move(next_));
  } else if (next_->acquires()) {
    turn.queue.Hold(next_->TakePermit());
  }
  return answered;
}

absl::Status RuleVerbs::Ask(RuleVerb verb, const wire::RespParser& command, Late& late,
                            base::Instant now) {
  using Owner = limiter::PermitHold::Owner;
  HEADGATE_RETURN_IF_ERROR(arguments_.Read(verb, command));
  limiter::Request request{.domain = arguments_.domain(), .descriptors = arguments_.descriptors()};
  if (verb == RuleVerb::kRelease) {
    return checker_.Release(request, wire::HashOfPermitId(arguments_.id()), released_, now,
                            &late.question);
  }
  if (verb == RuleVerb::kAcquire) {
    const bool is_given = !arguments_.id().empty();
    std::string id = is_given ? std::string(arguments_.id()) : wire::MakePermitId();
    const permit::Id hash = wire::HashOfPermitId(id);
    late.acquiring.reset(new Acquiring{
        .id = std::move(id),
        .hold = limiter::PermitHold(hash, arguments_.ttl().value_or(permit::kTtlMax),
                                    is_given ? Owner::kPerhapsOther : Owner::kThisRequest)});
    request.permits = &late.acquiring->hold;
    return checker_.Check(request, response_, now, &late.question);
  }
  bound_id_.clear();
  if (verb == RuleVerb::kRefund && !arguments_.id().empty()) {
    std::string content;
    rule::AppendRequestContent(arguments_.descriptors(), content);
    wire::AppendBoundId("refund", arguments_.id(), content, bound_id_);
  }
  request.operation = OperationOf(verb);
  request.once = {.id = bound_id_, .window = limiter::kIdRemembered};
  return checker_.Check(request, response_, now, &late.question);
}

Answered RuleVerbs::Reply(Late& late, const absl::Status& status, std::string& output) const {
  if (!status.ok()) {
    late.acquiring = nullptr;  // destroying the hold gives its permits back
    return WriteError(status, output, late.version);
  }
  wire::RespWriter reply(output, late.version);
  if (late.verb == RuleVerb::kRelease) {
    if (released_.waiting) return Answered::kLater;
    WriteReleased(released_, reply);
    return Answered::kWell;
  }
  if (response_.waiting) return Answered::kLater;
  if (late.verb == RuleVerb::kAcquire) {
    WriteAcquired(response_, late.acquiring->id, reply);
    return Answered::kWell;
  }
  const bool changes = late.verb == RuleVerb::kRefund || late.verb == RuleVerb::kReset;
  if (changes && !limiter::AnyRule(response_)) {
    return WriteError(
        absl::NotFoundError("no rule applies to any of the descriptors: nothing was changed"),
        output, late.version);
  }
  reply.Map(2);
  WriteDecisions(response_, reply);
  return Answered::kWell;
}

}  // namespace headgate::front::resp
