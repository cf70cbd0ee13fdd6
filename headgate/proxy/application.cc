#include "headgate/proxy/application.h"

#include <algorithm>
#include <utility>

#include "headgate/base/time_of_day.h"

namespace headgate::proxy {
namespace {

constexpr std::string_view kUnixClient = "unix";

void AddRetryAfter(base::Duration wait, http::Fields& fields) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  fields.Add("Retry-After", std::to_string(std::max<int64_t>(1, seconds)));
}

}  // namespace

std::unique_ptr<http::RequestReceiver> Application::OnRequest(http::RequestHead head,
                                                              const net::Peer& peer,
                                                              http::ServerExchange& exchange,
                                                              base::Instant now) {
  if (!options_.forwarded.via.empty() &&
      CountInVia(head.fields, options_.forwarded.via) >= kViaMax) {
    counters_.loops.Add();
    SendOwnAnswer(
        head,
        {.status = 508,
         .detail = "the request goes in circles: its Via names this proxy too often",
         .hint = "the upstream of a sidecar must not lead back to it",
         .error = relays_.options.says_reason ? "proxy_loop_detected" : std::string_view(),
         .proxy = relays_.options.name},
        exchange, base::TimeOfDay(options_.clock, now));
    return DropRest(exchange);
  }
  Arrival arrival{.head = std::move(head), .peer = &peer};
  if (rules_ == nullptr) return Enter(std::move(arrival), std::nullopt, exchange, now);
  const std::string_view client = ClientOf(arrival.head, peer);
  if (!relays_.admission.SeesRoom(client, now)) {
    const Verdict verdict = relays_.admission.Admit(client, now);
    if (!verdict.admitted) return Refuse(arrival.head, verdict, exchange, now);
    arrival.admitted = verdict;
    // Refused requests take nothing from the rules.
    if (verdict.counted_only) return Enter(std::move(arrival), std::nullopt, exchange, now);
  }
  return rules_->Receive(std::move(arrival), *this, exchange, now);
}

std::unique_ptr<http::RequestReceiver> Application::Enter(
    Arrival arrival, const std::optional<wire::RateLimitState>& rule_limit,
    http::ServerExchange& exchange, base::Instant now) {
  if (arrival.let_through && !arrival.admitted) {
    relays_.admission.LetThrough(now);
    return Proceed(std::move(arrival), {.has_limit = false}, rule_limit, exchange, now);
  }
  const bool can_wait =
      held_ != nullptr && !held_->full() && !held_->ends_before(now + PartWait::kAskAgain);
  const Verdict verdict =
      arrival.admitted ? *arrival.admitted : AskAgain(arrival, {.is_last = !can_wait}, now);
  if (verdict.ticket == 0) return Proceed(std::move(arrival), verdict, rule_limit, exchange, now);
  PartWait::Owner& owner = *this;
  return std::make_unique<PartWait>(owner, *held_, std::move(arrival), rule_limit, verdict.ticket,
                                    exchange, now);
}

Verdict Application::AskAgain(const Arrival& arrival, Asking asking, base::Instant now) {
  return relays_.admission.Ask(ClientOf(arrival.head, *arrival.peer), asking, now);
}

std::unique_ptr<http::RequestReceiver> Application::Proceed(
    Arrival arrival, const Verdict& verdict, const std::optional<wire::RateLimitState>& rule_limit,
    http::ServerExchange& exchange, base::Instant now) {
  if (!verdict.admitted) return Refuse(arrival.head, verdict, exchange, now);
  counters_.admitted.Add();
  const std::optional<uint64_t> client_key = KeyOf(ClientOf(arrival.head, *arrival.peer));
  if (!options_.client_field.empty()) RemoveLookAlikes(options_.client_field, arrival.head.fields);
  SetForwardedFields(options_.forwarded, *arrival.peer, arrival.head, scratch_);
  if (arrival.head.authority.empty()) arrival.head.authority = options_.default_authority;
  http::Fields fields;
  if (options_.describes_admitted) fields = Describe(verdict, rule_limit, now);
  auto relay = std::make_unique<Relay>(relays_, client_key, std::move(arrival.head),
                                       std::move(fields), exchange, now);
  if (verdict.counted_only || arrival.let_through) {
    // It would have ended here, so what follows is not charged.
    arrival.end.Tell({}, now);
  } else {
    relay->SetEnd(std::move(arrival.end));
  }
  relay->Begin(now);
  return relay;
}

void Application::OnRefused(const Arrival& arrival, base::Instant now) {
  counters_.refused.Add();
  GiveBack(arrival, now);
}

void Application::GiveBack(const Arrival& arrival, base::Instant now) {
  if (arrival.admitted) relays_.admission.OnLeft(Left::kUnasked, now, now);
}

// A field that comes twice names no client: the upstream could see the other one.
std::string_view Application::ClientOf(const http::RequestHead& head, const net::Peer& peer) {
  if (!options_.client_field.empty()) {
    if (head.fields.CountOf(options_.client_field) != 1) return {};
    return *head.fields.Find(options_.client_field);
  }
  if (!peer.ip) return kUnixClient;
  address_.clear();
  base::AppendIpAddress(*peer.ip, address_);
  return address_;
}

std::optional<uint64_t> Application::KeyOf(std::string_view client) const {
  if (!relays_.admission.refuses()) return std::nullopt;
  return base::HashBytes(secret_, base::KeyKind::kRaw, client).low;
}

http::Fields Application::Describe(const Verdict& verdict,
                                   const std::optional<wire::RateLimitState>& rule_limit,
                                   base::Instant now) {
  http::Fields fields;
  std::optional<wire::RateLimitState> tightest = rule_limit;
  if (verdict.has_limit && (!rule_limit || verdict.remaining < rule_limit->remaining)) {
    tightest = wire::RateLimitState{.policy = options_.policy,
                                    .quota = verdict.quota,
                                    .window = options_.cycle,
                                    .limit = verdict.quota,
                                    .remaining = verdict.remaining,
                                    .reset_after = verdict.reset_after,
                                    .denied = !verdict.admitted,
                                    .retry_after = verdict.retry_after};
  }
  if (tightest) {
    wire::EmitRateLimitFields(
        *tightest, options_.dialect, base::TimeOfDay(options_.clock, now), scratch_,
        [&](std::string_view name, std::string_view value) { fields.Add(name, value); });
  } else if (verdict.retry_after) {
    AddRetryAfter(*verdict.retry_after, fields);
  }
  return fields;
}

std::unique_ptr<http::RequestReceiver> Application::Refuse(const http::RequestHead& head,
                                                           const Verdict& verdict,
                                                           http::ServerExchange& exchange,
                                                           base::Instant now) {
  counters_.refused.Add();
  const http::Fields fields = Describe(verdict, std::nullopt, now);
  OwnAnswer answer{.status = 429, .detail = verdict.reason, .fields = &fields};
  std::string detail;
  if (const std::string& field = options_.client_field; verdict.names_no_client && !field.empty()) {
    const size_t count = head.fields.CountOf(field);
    detail = std::string(verdict.reason) + ": the header " + field +
             (count == 0   ? " is missing"
              : count == 1 ? " is empty"
                           : " comes more than once");
    answer.detail = detail;
    answer.hint =
        "send this header once, with the id of the client; --anonymous NAME of the sidecar lets "
        "such "
        "requests pass as one client";
  }
  SendOwnAnswer(head, answer, exchange, base::TimeOfDay(options_.clock, now));
  return DropRest(exchange);
}

}  // namespace headgate::proxy
