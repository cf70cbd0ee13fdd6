#include "headgate/proxy/health_check.h"

#include <utility>

namespace headgate::proxy {

HealthCheck::HealthCheck(const HealthCheckOptions& options, size_t address, const Connect& connect,
                         TickWheel& wheel, std::function<void(bool passed)> on_result,
                         base::Instant now)
    : options_(options),
      address_(address),
      connect_(connect),
      wheel_(wheel),
      on_result_(std::move(on_result)) {
  wheel_.Set(*this, now);
}

HealthCheck::~HealthCheck() { Disconnect(began_); }

void HealthCheck::OnTick(base::Instant now) {
  switch (phase_) {
    case Phase::kPause:
      return Begin(now);
    case Phase::kConnects:
    case Phase::kAsked:
      End(/*passed=*/false, now);
      [[fallthrough]];
    case Phase::kDone:
      break;
  }
  Disconnect(now);
  phase_ = Phase::kPause;
  wheel_.Set(*this, began_ + options_.interval);
}

void HealthCheck::Begin(base::Instant now) {
  phase_ = Phase::kConnects;
  began_ = now;
  connection_ = connect_(address_, *this);
  wheel_.Set(*this, now + options_.timeout);
}

void HealthCheck::OnConnected(base::Instant now) {
  const http::RequestHead head{.method = "GET",
                               .target = options_.path,
                               .scheme = "http",
                               .authority = "headgate-health-check"};
  phase_ = Phase::kAsked;
  exchange_ = &connection_->session().Begin(head, *this, now);
  exchange_->SendEnd({});
}

void HealthCheck::OnHead(http::ResponseHead head, base::Instant now) {
  std::exchange(exchange_, nullptr)->Cancel();
  End(head.status < 400, now);
}

void HealthCheck::OnFailed(http::Failure /*failure*/, std::string_view /*detail*/,
                           base::Instant now) {
  exchange_ = nullptr;
  End(/*passed=*/false, now);
}

void HealthCheck::OnClosed(UpstreamConnection::End /*end*/, std::string_view /*why*/,
                           base::Instant now) {
  if (phase_ == Phase::kConnects) End(/*passed=*/false, now);
}

// The connection is calling now, so the next tick closes it.
void HealthCheck::End(bool passed, base::Instant now) {
  phase_ = Phase::kDone;
  wheel_.Set(*this, now);
  on_result_(passed);
}

void HealthCheck::Disconnect(base::Instant now) {
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->Cancel();
  if (connection_ != nullptr) connection_->Close(now);
  connection_.reset();
}

}  // namespace headgate::proxy
