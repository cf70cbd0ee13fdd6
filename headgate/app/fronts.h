// The protocol fronts of one event loop. They create the session of each connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "headgate/app/engine.h"
#include "headgate/app/shared_stores.h"
#include "headgate/front/api/handler.h"
#include "headgate/front/mux/mux.h"
#include "headgate/front/resp/context.h"
#include "headgate/http/access.h"
#include "headgate/http/router.h"
#include "headgate/http/session.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Shared by the fronts of all loops, and outlives them.
struct FrontOptions {
  FrontOptions(const Settings& settings, Engine& engine);

  Engine& engine;
  http::Access access;
  http::Options http;
  observe::Metrics::Front resp_name;
  observe::Metrics::Front http_name;
  front::resp::ClientList clients;
  // Figures of the whole process; any loop may call it.
  std::function<front::resp::ServerFigures()> figures;
  // Set when the server begins to drain; /readyz then answers 503.
  std::atomic<bool> draining{false};
};

// Reports the sessions that all loops have begun, by protocol.
void CollectSessions(std::span<const std::unique_ptr<class Fronts>> fronts, observe::Sink& sink);

class Fronts {
 public:
  // `shared` is null if no store is configured.
  Fronts(FrontOptions& options, SharedStores* shared, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  // The protocols that an address of each kind speaks, on this loop.
  net::SessionChooser All() { return Speaks(Resp(), Http(router_)); }
  net::SessionChooser OnlyResp() { return Speaks(Resp(), {}); }
  net::SessionChooser OnlyHttp() { return Speaks({}, Http(router_)); }
  // HTTP without the deciding routes.
  net::SessionChooser Admin() { return Speaks({}, Http(admin_router_)); }

  // Counters of the commands of Redis clients. Any thread may read them.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }
  const front::mux::Counters& sessions() const { return sessions_; }

 private:
  // Counts the requests of one front on this loop for the metrics.
  class Meter final : public net::RequestMeter {
   public:
    Meter(observe::Metrics& metrics, observe::Metrics::Front front, uint32_t loop)
        : metrics_(metrics), front_(front), loop_(loop) {}
    void OnBatch(uint64_t requests, base::Duration elapsed) override {
      metrics_.OnBatch(loop_, front_, requests, elapsed);
    }
    void OnWait(base::Duration elapsed) override { metrics_.OnWait(loop_, front_, elapsed); }
    void OnProtocolError() override { metrics_.OnProtocolError(loop_, front_); }

   private:
    observe::Metrics& metrics_;
    const observe::Metrics::Front front_;
    const uint32_t loop_;
  };

  net::SessionChooser Speaks(front::mux::Sessions::Factory resp,
                             front::mux::Sessions::Factory http);
  front::mux::Sessions::Factory Resp();
  front::mux::Sessions::Factory Http(http::Handler& handler);
  void AddAdminRoutes(http::Router& router);

  FrontOptions& options_;
  limiter::Checker checker_;
  front::resp::Context resp_;
  front::api::CheckHandler check_;
  http::Router router_;
  http::Router admin_router_;
  front::mux::Counters sessions_;
  Meter resp_meter_;
  Meter http_meter_;
};

}  // namespace headgate::app
