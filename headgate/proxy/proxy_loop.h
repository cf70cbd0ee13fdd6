// Everything of a proxy on one event loop: its application, upstreams and timeouts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/event_loop.h"
#include "headgate/proxy/application.h"
#include "headgate/proxy/health_check.h"
#include "headgate/proxy/held_requests.h"
#include "headgate/proxy/relay.h"
#include "headgate/proxy/stream_connection.h"
#include "headgate/proxy/tick_wheel.h"
#include "headgate/proxy/upstreams.h"

namespace headgate::proxy {

// Shared by all loops.
struct ProxyOptions {
  ApplicationOptions application{};
  RelayOptions relay{};
  UpstreamsOptions upstreams{};
  HealthCheckOptions checks{};
  std::vector<StreamConnectionOptions> addresses{};  // at least one
};

// The loop writes, any thread reads.
struct alignas(64) ProxyCounters {
  ApplicationCounters application{};
  RelayCounters relays{};
  UpstreamsCounters upstreams{};
};

class ProxyLoop {
 public:
  // Everything must outlive this object, except that `loop` may end after LeaveLoop.
  ProxyLoop(const ProxyOptions& options, Admission& admission, net::EventLoop& loop,
            const base::DisciplinedClock& clock);
  ~ProxyLoop();
  ProxyLoop(const ProxyLoop&) = delete;

  // For the sessions of this loop. Their exchanges may outlive LeaveLoop.
  http::Application& application() { return application_; }
  const ProxyCounters& counters() const { return counters_; }

  // For rules that hold requests, for work of the loop that goes on in another turn, for timeouts,
  // and for the gate of the rules.
  HeldRequests& held() { return held_; }
  HeldRequests& deferred() { return deferred_; }
  TickWheel& wheel() { return wheel_; }
  void SetRules(RuleGate& rules) {
    rules_ = &rules;
    application_.SetRules(rules);
  }

  // Replaces the addresses of the upstream; at least one. On the loop's thread. Exchanges that have
  // begun are not disturbed. An address with the target and the server name of one before is the
  // same: it keeps its connections and its health. One that comes back while requests on its old
  // connections go on has these connections.
  void SetAddresses(std::span<const StreamConnectionOptions> addresses);

  // Whether requests are held in queues of rules, and to their clients' parts of the connections.
  // If not, those that are held go on. On the loop's thread.
  void SetHolds(bool holds);
  // Requests that would still wait at this time, for whatever, are answered 503; those whose turn
  // comes later are refused at once. On the loop's thread.
  void EndWaiting(base::Instant end);

  // Ends all exchanges. Call it when the loop does not run any more.
  void LeaveLoop();

 private:
  // The parts that live on the loop.
  struct OnLoop {
    explicit OnLoop(ProxyLoop& proxy)
        : woken(proxy.loop_, [&proxy] { proxy.upstreams_.OnWoken(proxy.clock_.Now()); }),
          tick(proxy.loop_, [&proxy] { proxy.Tick(); }),
          turn(proxy.loop_, [&proxy] { proxy.held_.Advance(proxy.clock_.Now()); }),
          work(proxy.loop_, [&proxy] { proxy.deferred_.Advance(proxy.clock_.Now()); }) {}

    net::EventLoop::Hook woken;
    net::Timer tick;
    net::Timer turn;  // of the first held request
    net::Timer work;  // that was deferred
  };

  std::unique_ptr<UpstreamConnection> Connect(size_t address, UpstreamConnection::Owner& owner);
  void Tick();

  const ProxyOptions& options_;
  net::EventLoop& loop_;
  const base::DisciplinedClock& clock_;
  ProxyCounters counters_;
  // By id.
  using Addresses = std::map<size_t, std::shared_ptr<const StreamConnectionOptions>>;
  Addresses addresses_;
  Addresses gone_;  // that had connections when the addresses changed last
  size_t next_address_ = 0;
  const proxy::Connect connect_;
  TickWheel wheel_;
  HeldRequests held_;
  HeldRequests deferred_;  // takes no places of requests
  base::Random random_;
  Upstreams upstreams_;
  const RelayContext relays_;
  Application application_;
  RuleGate* rules_ = nullptr;
  std::map<size_t, HealthCheck> checks_;  // by id of the address
  base::Instant waiting_ends_ = base::kInstantMax;
  std::optional<OnLoop> on_loop_;
};

}  // namespace headgate::proxy
