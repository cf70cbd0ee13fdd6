#include "headgate/proxy/application.h"

#include <algorithm>
#include <utility>

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
  const Verdict verdict = relays_.admission.Admit(ClientOf(head, peer), now);
  if (!verdict.admitted) {
    counters_.refused.Add();
    return Refuse(head, verdict, exchange, now);
  }
  counters_.admitted.Add();
  SetForwardedFields(options_.forwarded, peer, head, scratch_);
  http::Fields fields;
  if (options_.describes_admitted) fields = Describe(verdict, now);
  auto relay = std::make_unique<Relay>(relays_, std::move(head), std::move(fields), exchange, now);
  relay->Begin(now);
  return relay;
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

http::Fields Application::Describe(const Verdict& verdict, base::Instant now) {
  http::Fields fields;
  if (!verdict.has_limit) {
    if (verdict.retry_after) AddRetryAfter(*verdict.retry_after, fields);
    return fields;
  }
  const wire::RateLimitState state{.policy = options_.policy,
                                   .quota = verdict.quota,
                                   .window = options_.cycle,
                                   .limit = verdict.quota,
                                   .remaining = verdict.remaining,
                                   .reset_after = verdict.reset_after,
                                   .denied = !verdict.admitted,
                                   .retry_after = verdict.retry_after};
  wire::EmitRateLimitFields(
      state, options_.dialect, now, scratch_,
      [&](std::string_view name, std::string_view value) { fields.Add(name, value); });
  return fields;
}

std::unique_ptr<http::RequestReceiver> Application::Refuse(const http::RequestHead& head,
                                                           const Verdict& verdict,
                                                           http::ServerExchange& exchange,
                                                           base::Instant now) {
  const http::Fields fields = Describe(verdict, now);
  SendOwnAnswer(head, {.status = 429, .detail = verdict.reason, .fields = &fields}, exchange, now);
  return DropRest(exchange);
}

}  // namespace headgate::proxy
