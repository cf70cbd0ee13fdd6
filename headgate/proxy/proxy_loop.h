// Everything of a proxy on one event loop: its application, upstreams and timeouts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
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

  // The application that the sessions of this loop call. Their exchanges may outlive LeaveLoop.
  http::Application& application() { return application_; }
  const ProxyCounters& counters() const { return counters_; }

  // For rules that hold requests, for work that the loop does in a later turn, for timeouts, and
  // for the gate of the rules.
  HeldRequests& held() { return held_; }
  HeldRequests& deferred() { return deferred_; }
  TickWheel& wheel() { return wheel_; }
  void SetRules(RuleGate& rules) {
    rules_ = &rules;
    application_.SetRules(rules);
  }

  // Replaces the addresses of the upstream; at least one. On the loop's thread. Exchanges that have
  // begun are not disturbed. An address with the target and the server name of one before is the
  // same: it keeps its connections and its health. An address that comes back while its old
  // connections still have requests gets these connections back.
  void SetAddresses(std::span<const StreamConnectionOptions> addresses);

  // The addresses and their states: now, and on the loop's thread at each tick at which they have
  // changed. The views are valid during the call.
  struct DescribedAddress {
    const net::StreamTarget& target;
    AddressState state;
  };
  using OnAddresses = std::function<void(std::span<const DescribedAddress>, base::Instant now)>;
  void SetOnAddresses(OnAddresses call);

  // Whether requests wait in queues of rules, and clients are limited to their parts of the
  // connections. If false, held requests are released. On the loop's thread.
  void SetHolds(bool holds);
  // Requests that still wait at this time, for any reason, are answered 503. Requests whose turn in
  // a queue comes later than `end` are refused at once. On the loop's thread.
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
  void DescribeAddresses(base::Instant now);

  const ProxyOptions& options_;
  net::EventLoop& loop_;
  const base::DisciplinedClock& clock_;
  ProxyCounters counters_;
  // By id.
  using Addresses = std::map<size_t, std::shared_ptr<const StreamConnectionOptions>>;
  Addresses addresses_;
  Addresses gone_;  // removed addresses that still had connections at the last change
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
  OnAddresses on_addresses_;  // null: nobody asks
  std::vector<AddressState> states_;
  std::vector<AddressState> states_told_;
  std::vector<DescribedAddress> described_;
  std::map<size_t, HealthCheck> checks_;  // by id of the address
  base::Instant waiting_ends_ = base::kInstantMax;
  std::optional<OnLoop> on_loop_;
};

}  // namespace headgate::proxy
