#include "headgate/proxy/rule_gate.h"

#include <algorithm>
#include <utility>

#include "headgate/net/loopback.h"
#include "headgate/proxy/forwarded_fields.h"
#include "headgate/proxy/grpc.h"
#include "headgate/proxy/held_permits.h"
#include "headgate/proxy/own_answer.h"
#include "headgate/proxy/waiting_request.h"
#include "headgate/wire/request_path.h"

namespace headgate::proxy {

namespace {

std::optional<uint64_t> KnownSizeOf(const http::BodyLength& body) {
  switch (body.kind) {
    case http::BodyLength::Kind::kNone:
      return 0;
    case http::BodyLength::Kind::kSized:
      return body.bytes;
    case http::BodyLength::Kind::kUnsized:
    case http::BodyLength::Kind::kTunnel:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<http::RequestReceiver> RuleGate::Receive(Arrival arrival, Entrance& entrance,
                                                         http::ServerExchange& exchange,
                                                         base::Instant now) {
  if (const mapping::MappingSet* const set = judge_.mappings(); set != nullptr) {
    for (const std::string& name : set->headers) RemoveLookAlikes(name, arrival.head.fields);
  }
  std::unique_ptr<WaitingRequest> waiting;
  const auto make = [&] {
    if (waiting == nullptr) waiting = std::make_unique<WaitingRequest>(*this, entrance, exchange);
  };
  const auto make_asked = [&]() -> gate::Asked& {
    make();
    return waiting->MakeAsked();
  };
  const bool decided =
      judge_.Decide(Describe(arrival), make_asked, now, verdict_, BoundOf(arrival, entrance, now));
  if (judge_.has_read_path() && verdict_.outcome != gate::RequestOutcome::kInvalid)
    UseMatchedPath(arrival.head.target);
  if (!decided) {
    waiting->Keep(std::move(arrival), now);
    return waiting;
  }
  Follow(arrival, now);
  switch (NextOf(arrival, entrance, now)) {
    case Next::kEnter:
      return entrance.Enter(std::move(arrival), verdict_.limit, exchange, now);
    case Next::kRefuse:
      return Refuse(arrival, entrance, exchange, now);
    case Next::kHold:
      break;
  }
  make();
  waiting->Keep(std::move(arrival), now);
  waiting->Hold(verdict_, now);
  return waiting;
}

gate::WaitBound RuleGate::BoundOf(const Arrival& arrival, const Entrance& entrance,
                                  base::Instant now) const {
  gate::WaitBound bound;
  if (!entrance.refuses()) return bound;
  if (held_.full()) bound.wait_max = base::Duration(0);
  // A gRPC call's turn must come before its deadline.
  if (const auto timeout = GrpcTimeoutOf(arrival.head))
    bound.wait_max = std::min(bound.wait_max, *timeout - base::Duration(1));
  if (held_.end() < base::kInstantMax) bound.wait_max = std::min(bound.wait_max, held_.end() - now);
  bound.wait_max = std::max(bound.wait_max, base::Duration(0));
  bound.peeks = bound.wait_max < base::kDurationMax || held_.may_fill();
  return bound;
}

mapping::DescribedRequest RuleGate::Describe(const Arrival& arrival) {
  const http::RequestHead& head = arrival.head;
  fields_.clear();
  for (const auto [name, value] : head.fields) fields_.emplace_back(name, value);
  const mapping::MappingSet* const set = judge_.mappings();
  const std::optional<base::IpAddress>& ip = arrival.peer->ip;
  return {
      .method = head.method,
      .host = head.authority,
      .target = head.target,
      .fields = fields_,
      .client = ip,
      .body_bytes = KnownSizeOf(head.body),
      .is_forwarded = ip ? !net::OnlySeemsLocal(*arrival.peer) : set != nullptr && set->unix_peers,
      .is_path_normalized = true,
      .is_preflight = arrival.is_preflight};
}

void RuleGate::Follow(Arrival& arrival, base::Instant now) {
  // Without a settler, nobody learns of the end.
  limiter::PermitHold permits = judge_.TakePermits();
  std::vector<limiter::SizeCharge> charges = judge_.TakeCharges();
  if (settler_ == nullptr) return;
  if (!permits.empty()) {
    arrival.end.Add(std::make_unique<HeldPermits>(std::move(permits), settler_->wheel(), now), now);
  }
  if (!charges.empty()) arrival.end.Add(settler_->Follow(std::move(charges)), now);
}

void RuleGate::UseMatchedPath(std::string& target) {
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  if (!path.starts_with('/')) return;
  scratch_.clear();
  wire::AppendMergedPath(path, scratch_);
  if (scratch_ != path) target.replace(0, path.size(), scratch_);
}

const RuleGate::Refusal RuleGate::kLeaves = {.status = 503,
                                             .detail = "the proxy shuts down before its turn",
                                             .hint = "",
                                             .retry_soon = true};

RuleGate::Next RuleGate::RefuseBecause(const Refusal& refusal) {
  refusal_ = refusal;
  return Next::kRefuse;
}

RuleGate::Next RuleGate::NextOf(Arrival& arrival, const Entrance& entrance, base::Instant now) {
  const bool passes = gate::Passes(verdict_.outcome);
  if (passes && verdict_.wait <= base::Duration(0)) return Next::kEnter;
  if (!entrance.refuses()) {
    if (!passes) counters_.let_through.Add();
    arrival.let_through = !passes;
    if (verdict_.limit) {
      verdict_.limit->denied = false;
      verdict_.limit->retry_after.reset();
    }
    return Next::kEnter;
  }
  if (!passes) {
    return RefuseBecause({.status = verdict_.status,
                          .detail = gate::DescribeRefusal(verdict_.outcome),
                          .hint = verdict_.detail,
                          .retry_soon = verdict_.outcome == gate::RequestOutcome::kUnavailable});
  }
  if (verdict_.only_peeked && held_.full()) {
    counters_.held_refused.Add();
    return RefuseBecause({.status = 503,
                          .detail = "too many requests wait for their turn",
                          .hint = "",
                          .retry_soon = true});
  }
  if (const auto timeout = GrpcTimeoutOf(arrival.head); timeout && *timeout <= verdict_.wait) {
    return RefuseBecause(
        {.status = 504, .detail = "the deadline of the call is before its turn", .hint = ""});
  }
  if (held_.ends_before(now + verdict_.wait)) return RefuseBecause(kLeaves);
  return Next::kHold;
}

std::unique_ptr<http::RequestReceiver> RuleGate::RefuseAtEnd(const Arrival& arrival,
                                                             Entrance& entrance,
                                                             http::ServerExchange& exchange,
                                                             base::Instant now) {
  verdict_ = {};
  refusal_ = kLeaves;
  return Refuse(arrival, entrance, exchange, now);
}

std::unique_ptr<http::RequestReceiver> RuleGate::Refuse(const Arrival& arrival, Entrance& entrance,
                                                        http::ServerExchange& exchange,
                                                        base::Instant now) {
  http::Fields fields;
  if (verdict_.limit) {
    wire::EmitRateLimitFields(
        *verdict_.limit, dialect_, judge_.time_of_day(), scratch_,
        [&](std::string_view name, std::string_view value) { fields.Add(name, value); });
  }
  if (refusal_.retry_soon) fields.Add("Retry-After", answer::kUnavailableRetryAfter);
  if (const std::string challenge = ChallengeOf(verdict_); !challenge.empty())
    fields.Add("WWW-Authenticate", challenge);
  entrance.OnRefused(arrival, now);
  OwnAnswer answer{.status = refusal_.status,
                   .detail = refusal_.detail,
                   .hint = refusal_.hint,
                   .fields = &fields,
                   .cors = &entrance.cors(),
                   .dialect = verdict_.limit ? verdict_.limit->dialect : std::nullopt};
  std::string content_type;
  std::string body;
  if (WriteRefusal(verdict_, content_type, body)) {
    answer.content_type = content_type;
    answer.body = body;
  }
  SendOwnAnswer(arrival.head, answer, exchange, judge_.time_of_day());
  return DropRest(exchange);
}

}  // namespace headgate::proxy
