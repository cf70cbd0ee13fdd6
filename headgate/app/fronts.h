// The fronts of one loop: what its connections' sessions are made of.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "headgate/app/engine.h"
#include "headgate/app/metered_session.h"
#include "headgate/app/shared_stores.h"
#include "headgate/front/http/handler.h"
#include "headgate/front/resp/context.h"
#include "headgate/limiter/limiter.h"
#include "headgate/net/access.h"
#include "headgate/net/http_router.h"
#include "headgate/net/http_session.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Shared by the fronts of all loops, and outlives them.
struct FrontOptions {
  FrontOptions(const Settings& settings, Engine& engine, const base::Clock& clock);

  Engine& engine;
  const base::Clock& clock;
  net::Access access;
  net::HttpOptions http;
  observe::Metrics::Front resp_name;
  observe::Metrics::Front http_name;
  front::resp::ClientList clients;
  // How the whole process is doing; called by any loop.
  std::function<front::resp::ServerFigures()> figures;
  // Set once the server goes down; readiness is red then.
  std::atomic<bool> draining{false};
};

// CL.THROTTLE's decisions, which no rule stands behind, under a domain that no rule file can have: the empty one.
void CollectThrottle(std::span<const std::unique_ptr<class Fronts>> fronts, observe::Sink& sink);

class Fronts {
 public:
  // `shared` is null where every limit is this process's alone.
  Fronts(FrontOptions& options, SharedStores* shared, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  net::SessionFactories::Factory Resp();
  net::SessionFactories::Factory Http();
  // HTTP without the deciding routes.
  net::SessionFactories::Factory Admin();

  // Counts the commands of Redis clients and the decisions by limits that they bring. From any thread.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }

 private:
  // Counts what passes.
  class CountingHandler final : public net::HttpHandler {
   public:
    explicit CountingHandler(net::HttpHandler& handler) : handler_(handler) {}
    void Handle(const net::HttpRequest& request, net::HttpResponse& response, base::Instant now) override {
      handler_.Handle(request, response, now);
      if (!response.later) ++handled_;
    }
    uint64_t handled() const { return handled_; }

   private:
    net::HttpHandler& handler_;
    uint64_t handled_ = 0;
  };

  net::SessionFactories::Factory Http(net::HttpHandler& handler);
  void AddAdminRoutes(net::HttpRouter& router);

  FrontOptions& options_;
  limiter::Checker checker_;
  front::resp::Context resp_;
  front::http::CheckHandler check_;
  net::HttpRouter router_;
  net::HttpRouter admin_router_;
  CountingHandler http_handler_{router_};
  CountingHandler admin_handler_{admin_router_};
  const Meter resp_meter_;
  const Meter http_meter_;
};

}  // namespace headgate::app
