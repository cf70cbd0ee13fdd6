// Checks the health of an upstream at intervals: a GET must be answered with a status below 400.
// Each check has a connection of its own, so that it also proves that connections can be made.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "headgate/proxy/tick_wheel.h"
#include "headgate/proxy/upstream_connection.h"

namespace headgate::proxy {

struct HealthCheckOptions {
  // Empty: there are no checks.
  std::string path{};
  base::Duration interval = std::chrono::seconds(5);
  // How long a check may take, from the beginning of the connection to the head of the answer.
  base::Duration timeout = std::chrono::seconds(2);
};

class HealthCheck final : private UpstreamConnection::Owner,
                          private http::ResponseReceiver,
                          private TickWheel::Entry {
 public:
  // `on_result` gets the result of each check. The first one begins with the next tick.
  HealthCheck(const HealthCheckOptions& options, size_t address, const Connect& connect,
              TickWheel& wheel, std::function<void(bool passed)> on_result, base::Instant now);
  ~HealthCheck() override;

 private:
  enum class Phase : uint8_t { kPause, kConnects, kAsked, kDone };

  void OnTick(base::Instant now) override;

  void OnConnected(base::Instant now) override;
  void OnChanged(base::Instant /*now*/) override {}
  void OnClosed(UpstreamConnection::End end, std::string_view why, base::Instant now) override;

  void OnInformational(const http::ResponseHead& /*head*/, base::Instant /*now*/) override {}
  void OnHead(http::ResponseHead head, base::Instant now) override;
  void OnData(std::string_view /*bytes*/, base::Instant /*now*/) override {}
  void OnEnd(const http::Fields& /*trailers*/, base::Instant /*now*/) override {}
  void OnFailed(http::Failure failure, std::string_view detail, base::Instant now) override;
  void OnWritable(base::Instant /*now*/) override {}

  void Begin(base::Instant now);
  void End(bool passed, base::Instant now);
  // Not from within a call of the connection.
  void Disconnect(base::Instant now);

  const HealthCheckOptions& options_;
  const size_t address_;
  const Connect& connect_;
  TickWheel& wheel_;
  const std::function<void(bool passed)> on_result_;
  Phase phase_ = Phase::kPause;
  base::Instant began_{};
  std::unique_ptr<UpstreamConnection> connection_;
  http::ClientExchange* exchange_ = nullptr;
};

}  // namespace headgate::proxy
