// The protocol fronts of one event loop. They create the session of each connection.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "headgate/access/access.h"
#include "headgate/app/runtime/engine.h"
#include "headgate/base/random_secret.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/api/handler.h"
#include "headgate/front/auth/handler.h"
#include "headgate/front/mux/handler_sessions.h"
#include "headgate/front/mux/mux.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/spoe/session.h"
#include "headgate/http/routing/router.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Shared by the fronts of all loops, and outlives them.
struct FrontOptions {
  // `admin` is what HTTP addresses say about the process beside their own routes.
  FrontOptions(const Settings& settings, front::admin::AdminSources admin, Engine& engine,
               access::Access& access);

  const front::admin::AdminSources admin;
  Engine& engine;
  observe::Log* log = nullptr;  // null: nothing is logged
  access::Access& access;
  const front::mux::HandlerSessionOptions http;
  observe::Metrics::Front resp_name;
  observe::Metrics::Front http_name;
  observe::Metrics::Front spoe_name;
  front::resp::ClientList clients;
  front::resp::Scripts scripts;
  // Figures of the whole process; any loop may call it.
  std::function<front::resp::ServerFigures()> figures;

  // Forward-auth.
  const bool has_auth;
  const wire::RateLimitDialect dialect;
  // The bodies of refusals, by file; the default has the name "".
  std::map<std::string, std::shared_ptr<const rule::Refusal>> refusals;
  const uint32_t retry_after_jitter_percent;
  const base::Duration retry_after_jitter_max;
  std::string partition_secret;    // empty: no pk
  std::string reservation_secret;  // empty: that of the store
  gate::LiveMappings mappings;
  gate::Repeats repeats{{}};
  const base::HashSecret repeats_secret = base::RandomHashSecret();
};

class Fronts {
 public:
  // `checker` decides on `events`, the loop of this number. All must outlive this object.
  Fronts(FrontOptions& options, limiter::Checker& checker, net::EventLoop& events, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  // How answers over HTTP and SPOE describe limits. An absent or empty part is as in the settings.
  struct Form {
    std::optional<wire::RateLimitDialect> dialect{};
    std::string refusal_file{};  // one of FrontOptions::refusals
    auto operator<=>(const Form&) const = default;
  };
  // The protocols that an address of each kind speaks, on this loop.
  net::SessionChooser All(const Form& form) { return Speaks(Resp(), &HttpIn(form).sessions); }
  net::SessionChooser OnlyResp() { return Speaks(Resp(), nullptr); }
  net::SessionChooser OnlyHttp(const Form& form) { return Speaks({}, &HttpIn(form).sessions); }
  net::SessionChooser OnlySpoe(const Form& form);

  // Counters of the commands of Redis clients. Any thread may read them.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }
  const front::mux::Counters& sessions() const { return sessions_; }
  const gate::Counters& auth_counters() const { return auth_counters_; }
  const http::http2::Counters& http2_counters() const { return http2_counters_; }

  // Count the requests of these protocols on this loop, for all addresses.
  net::RequestMeter& resp_meter() { return resp_meter_; }
  net::RequestMeter& http_meter() { return http_meter_; }

 private:
  // The front for HTTP with answers in one form.
  struct HttpFront {
    HttpFront(Fronts& fronts, const answer::LimitAnswerOptions& answer);

    front::api::CheckHandler check;
    front::auth::AuthHandler auth;
    http::routing::Router router;
    front::mux::HandlerSessions sessions;
  };
  // The agent for HAProxy with answers in one form.
  struct SpoeFront {
    SpoeFront(Fronts& fronts, const answer::LimitAnswerOptions& options);

    answer::LimitAnswer answer;
    gate::Judge judge;
    front::spoe::Context context;
  };

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

  net::SessionChooser Speaks(front::mux::Sessions::Factory resp, front::mux::HandlerSessions* http);
  front::mux::Sessions::Factory Resp();
  HttpFront& HttpIn(const Form& form);
  access::Post PostToLoop() const;
  answer::LimitAnswerOptions AnswerIn(const Form& form) const;
  gate::JudgeOptions JudgeOptionsOf() const;

  FrontOptions& options_;
  limiter::Checker& checker_;
  net::EventLoop& events_;
  front::resp::Context resp_;
  http::http2::Counters http2_counters_;
  std::map<Form, HttpFront> http_;
  std::map<Form, SpoeFront> spoe_;
  gate::Counters auth_counters_;
  front::mux::Counters sessions_;
  Meter resp_meter_;
  Meter http_meter_;
  Meter spoe_meter_;
};

}  // namespace headgate::app
