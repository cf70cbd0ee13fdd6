#include "headgate/proxy/application.h"

#include <algorithm>
#include <utility>

#include "headgate/base/time_of_day.h"
#include "headgate/http/date.h"
#include "headgate/proxy/dynamic_threshold.h"
#include "headgate/wire/alike_names.h"
#include "headgate/wire/field_value.h"
#include "headgate/wire/preflight.h"

namespace headgate::proxy {
namespace {

constexpr std::string_view kUnixClient = "unix";

// Counts a preflight that is in flight, until it has ended.
class PreflightEnd final : public EndListener {
 public:
  PreflightEnd(PreflightsInFlight& in_flight, uint64_t address)
      : in_flight_(in_flight), address_(address) {}
  void OnEnded(const BodySizes& /*sizes*/, base::Instant /*now*/) override {
    --in_flight_.all;
    const auto of_address = in_flight_.by_address.find(address_);
    if (--of_address->second == 0) in_flight_.by_address.erase(of_address);
  }

 private:
  PreflightsInFlight& in_flight_;
  const uint64_t address_;
};

void AddRetryAfter(base::Duration wait, http::Fields& fields) {
  fields.Add("Retry-After", std::to_string(wire::RetryAfterSeconds(wait)));
}

}  // namespace

std::unique_ptr<http::RequestReceiver> Application::OnRequest(http::RequestHead&& head,
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
         .proxy = relays_.options.name,
         .cors = &relays_.options.cors},
        exchange, base::TimeOfDay(options_.clock, now));
    return DropRest(exchange);
  }
  if (!TakeForward(head)) return AnswerAsLast(head, exchange, now);
  const bool is_preflight = IsPreflight(head);
  Arrival arrival{.head = std::move(head), .peer = &peer};
  arrival.is_preflight = is_preflight && BeginPreflight(peer, arrival.end, now);
  if (rules_ == nullptr) return Enter(std::move(arrival), std::nullopt, exchange, now);
  const std::string_view client = ClientOf(arrival.head, peer);
  if (!arrival.is_preflight && !relays_.admission.SeesRoom(client, now)) {
    const AdmissionVerdict verdict = relays_.admission.Admit(client, now);
    if (!verdict.admitted) return Refuse(arrival.head, verdict, exchange, now);
    arrival.admitted = verdict;
    // Refused requests take nothing from the rules.
    if (verdict.counted_only) return Enter(std::move(arrival), std::nullopt, exchange, now);
  }
  return rules_->Receive(std::move(arrival), *this, exchange, now);
}

// The answer takes nothing from the client's share, because the service does not see the request.
// TRACE is refused: its answer would show the client the fields that other proxies have added.
std::unique_ptr<http::RequestReceiver> Application::AnswerAsLast(const http::RequestHead& head,
                                                                 http::ServerExchange& exchange,
                                                                 base::Instant now) {
  counters_.not_forwarded.Add();
  if (head.method == "OPTIONS") {
    http::ResponseHead answer{.status = 200};
    const auto date = http::Date(base::TimeOfDay(options_.clock, now));
    answer.fields.Add("Date", {date.data(), date.size()});
    answer.body = {.kind = http::BodyLength::Kind::kSized, .bytes = 0};
    exchange.SendHead(answer);
    exchange.SendEnd({});
  } else {
    SendOwnAnswer(head,
                  {.status = 501,
                   .detail = "Max-Forwards ends at this proxy, which does not answer TRACE",
                   .hint = "a larger Max-Forwards reaches the service"},
                  exchange, base::TimeOfDay(options_.clock, now));
  }
  return DropRest(exchange);
}

std::unique_ptr<http::RequestReceiver> Application::Enter(
    Arrival arrival, const std::optional<wire::RateLimitState>& rule_limit,
    http::ServerExchange& exchange, base::Instant now) {
  if ((arrival.let_through || arrival.is_preflight) && !arrival.admitted) {
    const uint64_t number = relays_.admission.LetThrough(now);
    return Proceed(std::move(arrival), {.has_limit = false, .number = number}, rule_limit, exchange,
                   now);
  }
  const bool can_wait =
      held_ != nullptr && !held_->full() && !held_->ends_before(now + PartWait::kAskAgain);
  const AdmissionVerdict verdict =
      arrival.admitted ? *arrival.admitted : AskAgain(arrival, {.is_last = !can_wait}, now);
  if (verdict.ticket == 0) return Proceed(std::move(arrival), verdict, rule_limit, exchange, now);
  PartWait::Owner& owner = *this;
  return std::make_unique<PartWait>(owner, *held_, std::move(arrival), rule_limit, verdict.ticket,
                                    exchange, now);
}

AdmissionVerdict Application::AskAgain(const Arrival& arrival, Asking asking, base::Instant now) {
  return relays_.admission.Ask(ClientOf(arrival.head, *arrival.peer), asking, now);
}

std::unique_ptr<http::RequestReceiver> Application::Proceed(
    Arrival arrival, const AdmissionVerdict& verdict,
    const std::optional<wire::RateLimitState>& rule_limit, http::ServerExchange& exchange,
    base::Instant now) {
  if (!verdict.admitted) return Refuse(arrival.head, verdict, exchange, now);
  (arrival.is_preflight ? counters_.preflights : counters_.admitted).Add();
  const std::optional<uint64_t> client_key = KeyOf(
      arrival.is_preflight ? AddressOf(*arrival.peer) : ClientOf(arrival.head, *arrival.peer));
  if (!options_.client_field.empty()) RemoveLookAlikes(options_.client_field, arrival.head.fields);
  SetForwardedFields(options_.forwarded, *arrival.peer, arrival.head, scratch_);
  if (arrival.head.authority.empty()) arrival.head.authority = options_.default_authority;
  http::Fields fields;
  if (options_.describes_admitted || (rule_limit && rule_limit->dialect))
    fields = Describe(verdict, rule_limit, now);
  auto relay = std::make_unique<Relay>(relays_, client_key, std::move(arrival.head),
                                       std::move(fields), exchange, now);
  if (verdict.counted_only || arrival.let_through) {
    // Without passthrough the request would have ended here, so nothing more is charged.
    arrival.end.Tell({}, now);
  } else {
    relay->SetEnd(std::move(arrival.end));
  }
  relay->SetAdmitted(verdict.number);
  if (arrival.is_preflight) relay->LeaveOutContent();
  relay->Begin(now);
  return relay;
}

void Application::OnRefused(const Arrival& arrival, base::Instant now) {
  counters_.refused.Add();
  GiveBack(arrival, now);
}

void Application::GiveBack(const Arrival& arrival, base::Instant now) {
  if (!arrival.admitted) return;
  relays_.admission.OnLeft({.number = arrival.admitted->number, .was_sent = false, .sent_at = now},
                           now);
}

// A field that comes twice, or that the upstream could read differently, names no client. This
// check is not needed for a name from a certificate, which this proxy has written.
std::string_view Application::ClientOf(const http::RequestHead& head, const net::Peer& peer) {
  if (!options_.client_field.empty()) {
    if (head.fields.CountOf(options_.client_field) != 1) return {};
    const std::string_view value = *head.fields.Find(options_.client_field);
    if (!value.empty() && value == peer.certificate_name) return value;
    client_.clear();
    std::string_view client;
    const bool valid = wire::ReadFieldValue(options_.client_field, value, client_, client);
    return valid ? client : std::string_view();
  }
  return AddressOf(peer);
}

bool Application::BeginPreflight(const net::Peer& peer, RequestEnd& end, base::Instant now) {
  const uint64_t address = HashOf(AddressOf(peer));
  const auto of_address = preflights_.by_address.find(address);
  const size_t own = of_address == preflights_.by_address.end() ? 0 : of_address->second;
  if (!MayTakeOne(own, options_.preflights_max - preflights_.all)) {
    counters_.preflights_over.Add();
    return false;
  }
  ++preflights_.all;
  ++preflights_.by_address[address];
  end.Add(std::make_unique<PreflightEnd>(preflights_, address), now);
  return true;
}

bool Application::IsPreflight(const http::RequestHead& head) const {
  if (!options_.passes_preflights || !head.body.is_empty() || head.expects_continue ||
      !wire::IsPreflight(head.method, head.fields))
    return false;
  const std::string& name = options_.client_field;
  return name.empty() ||
         std::none_of(head.fields.begin(), head.fields.end(),
                      [&](const auto& field) { return wire::IsAlikeField(field.name, name); });
}

std::string_view Application::AddressOf(const net::Peer& peer) {
  if (!peer.ip) return kUnixClient;
  address_.clear();
  base::AppendIpAddress(*peer.ip, address_);
  return address_;
}

std::optional<uint64_t> Application::KeyOf(std::string_view client) const {
  if (!relays_.admission.refuses()) return std::nullopt;
  return HashOf(client);
}

http::Fields Application::Describe(const AdmissionVerdict& verdict,
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
                                    .more_after = verdict.reset_after,
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
                                                           const AdmissionVerdict& verdict,
                                                           http::ServerExchange& exchange,
                                                           base::Instant now) {
  counters_.refused.Add();
  const http::Fields fields = Describe(verdict, std::nullopt, now);
  OwnAnswer answer{
      .status = 429, .detail = verdict.reason, .fields = &fields, .cors = &relays_.options.cors};
  std::string detail;
  if (const std::string& field = options_.client_field; verdict.names_no_client && !field.empty()) {
    const size_t count = head.fields.CountOf(field);
    detail = std::string(verdict.reason) + ": the header " + field +
             (count == 0   ? " is missing"
              : count == 1 ? " is empty or malformed"
                           : " comes more than once");
    answer.detail = detail;
    answer.hint =
        "send this header once, with the id of the client; --anonymous NAME of the sidecar lets "
        "such "
        "requests pass as one client";
  }
  std::string body;
  if (options_.refusal != nullptr && !verdict.names_no_client) {
    rule::Refused refused{.rule = options_.policy, .limit = verdict.quota};
    if (verdict.retry_after) refused.seconds = wire::RetryAfterSeconds(*verdict.retry_after);
    options_.refusal->AppendBody(refused, body);
    answer.content_type = options_.refusal->content_type();
    answer.body = body;
  }
  SendOwnAnswer(head, answer, exchange, base::TimeOfDay(options_.clock, now));
  return DropRest(exchange);
}

}  // namespace headgate::proxy
