// The fronts of one loop: what its connections' sessions are made of.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "headgate/app/engine.h"
#include "headgate/app/metered_session.h"
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
  FrontOptions(const Settings& settings, Engine& engine, const base::Clock& clock);

  Engine& engine;
  const base::Clock& clock;
  http::Access access;
  http::Options http;
  observe::Metrics::Front resp_name;
  observe::Metrics::Front http_name;
  front::resp::ClientList clients;
  // How the whole process is doing; called by any loop.
  std::function<front::resp::ServerFigures()> figures;
  // Set once the server goes down; readiness is red then.
  std::atomic<bool> draining{false};
};

// The sessions that all loops have begun, by protocol.
void CollectSessions(std::span<const std::unique_ptr<class Fronts>> fronts, observe::Sink& sink);

class Fronts {
 public:
  // `shared` is null where every limit is this process's alone.
  Fronts(FrontOptions& options, SharedStores* shared, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  // What an address of this kind speaks on this loop.
  net::SessionChooser All() { return front::mux::Mux({.resp = Resp(), .http = Http(http_handler_)}, sessions_); }
  net::SessionChooser OnlyResp() { return front::mux::Mux({.resp = Resp(), .http = {}}, sessions_); }
  net::SessionChooser OnlyHttp() { return front::mux::Mux({.resp = {}, .http = Http(http_handler_)}, sessions_); }
  // HTTP without the deciding routes.
  net::SessionChooser Admin() { return front::mux::Mux({.resp = {}, .http = Http(admin_handler_)}, sessions_); }

  // Counts the commands of Redis clients. From any thread.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }
  const front::mux::Counters& sessions() const { return sessions_; }

 private:
  // Counts what passes.
  class CountingHandler final : public http::Handler {
   public:
    explicit CountingHandler(http::Handler& handler) : handler_(handler) {}
    void Handle(const http::Request& request, http::Response& response, base::Instant now) override {
      handler_.Handle(request, response, now);
      if (!response.later) ++handled_;
    }
    uint64_t handled() const { return handled_; }

   private:
    http::Handler& handler_;
    uint64_t handled_ = 0;
  };

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
  CountingHandler http_handler_{router_};
  CountingHandler admin_handler_{admin_router_};
  const Meter resp_meter_;
  const Meter http_meter_;
};

}  // namespace headgate::app
