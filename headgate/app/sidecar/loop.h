// The part of a sidecar on one event loop: the sessions of clients, and the proxy behind them.
#pragma once

#include <memory>
#include <vector>

#include "headgate/app/sidecar/proxy_settings.h"
#include "headgate/app/sidecar/sessions.h"
#include "headgate/base/clock.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/tls_context.h"
#include "headgate/observe/log.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/proxy/upstream/failure_watch.h"
#include "headgate/proxy/upstream/names.h"

namespace headgate::app {

class SidecarLoop {
 public:
  // Everything must outlive this object. `upstreams` are the first ones; SetUpstreams changes them.
  SidecarLoop(const ProxySettings& settings, const std::vector<proxy::upstream::Address>& upstreams,
              const SidecarSessionOptions& session_options, proxy::Admission& admission,
              net::EventLoop& loop, const base::DisciplinedClock& clock, observe::Log& log,
              proxy::upstream::FailureWatch& upstream_watch);

  SidecarSessions& sessions() { return sessions_; }
  proxy::ProxyLoop& proxy() { return proxy_; }
  // While the loop does not run.
  void LeaveLoop() { proxy_.LeaveLoop(); }
  // Changes the upstreams of the requests that follow, and the TLS of new connections to them
  // (null: plain). Call it on the loop.
  void SetUpstreams(const std::vector<proxy::upstream::Address>& upstreams,
                    const std::shared_ptr<net::TlsContext>& tls);

 private:
  const ProxySettings& settings_;
  observe::Log& log_;
  proxy::upstream::FailureWatch& upstream_watch_;
  http::http2::Counters upstream_http2_;
  const proxy::ProxyOptions options_;
  proxy::ProxyLoop proxy_;
  SidecarSessions sessions_;
};

// The settings that the sessions of all loops share.
SidecarSessionOptions SessionOptionsOf(const ProxySettings& settings, const base::Clock& clock);

}  // namespace headgate::app
