#include "headgate/app/fronts.h"

#include "headgate/app/version.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/resp/session.h"

namespace headgate::app {

FrontOptions::FrontOptions(const Settings& settings, Engine& shared_engine)
    : engine(shared_engine),
      access{.credential = settings.credential},
      http{.bounds = {.body_bytes_max = settings.max_body_bytes},
           .hosts = http::KnownHosts(settings.known_host)},
      resp_name(engine.metrics().AddFront("resp")),
      http_name(engine.metrics().AddFront("http")) {}

Fronts::Fronts(FrontOptions& options, SharedStores* shared, uint32_t loop)
    : options_(options),
      checker_(shared == nullptr ? limiter::Checker(options.engine.limiter(), loop)
                                 : limiter::Checker(options.engine.limiter(), loop,
                                                    shared->decider(loop), shared->naming())),
      resp_({.checker = checker_,
             .access = options.access,
             .version = std::string(kVersion),
             .loop = loop,
             .clients = &options.clients,
             .figures = options.figures}),
      check_(checker_, {}),
      router_("Headgate", options.access),
      admin_router_("Headgate, the admin address", options.access),
      resp_meter_(options.engine.metrics(), options.resp_name, loop),
      http_meter_(options.engine.metrics(), options.http_name, loop) {
  check_.AddRoutes(router_);
  AddAdminRoutes(router_);
  AddAdminRoutes(admin_router_);
}

net::SessionChooser Fronts::Speaks(front::mux::Sessions::Factory resp,
                                   front::mux::Sessions::Factory http) {
  return front::mux::Mux({.resp = std::move(resp),
                          .http = std::move(http),
                          .resp_meter = &resp_meter_,
                          .http_meter = &http_meter_},
                         sessions_);
}

front::mux::Sessions::Factory Fronts::Resp() {
  return [this](const net::Peer& peer) {
    return std::make_unique<front::resp::RespSession>(resp_, peer);
  };
}

front::mux::Sessions::Factory Fronts::Http(http::Handler& handler) {
  return [this, &handler](const net::Peer& peer) {
    return std::make_unique<http::Session>(handler, options_.http, peer);
  };
}

void Fronts::AddAdminRoutes(http::Router& router) {
  Engine& engine = options_.engine;
  front::admin::AddRoutes(
      {.rules = [&engine] { return engine.limiter().rules(); },
       .metrics = [&engine] { return engine.metrics().Render(); },
       .readiness =
           [&draining = options_.draining] {
             return draining.load(std::memory_order_relaxed)
                        ? absl::UnavailableError("draining: the server is going down")
                        : absl::OkStatus();
           }},
      router);
}

void CollectSessions(std::span<const std::unique_ptr<Fronts>> fronts, observe::Sink& sink) {
  uint64_t resp = 0;
  uint64_t http = 0;
  for (const auto& front : fronts) {
    resp += front->sessions().resp.value();
    http += front->sessions().http.value();
  }
  sink.Set(observe::Metric::kSessions, {"resp"}, resp);
  sink.Set(observe::Metric::kSessions, {"http"}, http);
}

}  // namespace headgate::app
