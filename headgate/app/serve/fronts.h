// The protocol fronts of one event loop. They create the session of each connection.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "headgate/access/access.h"
#include "headgate/app/runtime/engine.h"
#include "headgate/app/runtime/posted_editor.h"
#include "headgate/app/runtime/shared_stores.h"
#include "headgate/base/random_secret.h"
#include "headgate/front/api/handler.h"
#include "headgate/front/auth/handler.h"
#include "headgate/front/mux/handler_sessions.h"
#include "headgate/front/mux/mux.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/spoe/session.h"
#include "headgate/http/router.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Shared by the fronts of all loops, and outlives them.
struct FrontOptions {
  FrontOptions(const Settings& settings, Engine& engine, access::Access& access);

  Engine& engine;
  observe::Log* log = nullptr;  // null: nothing is logged
  access::Access& access;
  const front::mux::HandlerSessionOptions http;
  const front::mux::HandlerSessionOptions admin_http;  // of the admin address
  const base::Duration edits_answer_within;
  EditorThread* editor = nullptr;  // null: the rules cannot be changed through the admin address
  observe::Metrics::Front resp_name;
  observe::Metrics::Front http_name;
  observe::Metrics::Front spoe_name;
  front::resp::ClientList clients;
  front::resp::Scripts scripts;
  // Figures of the whole process; any loop may call it.
  std::function<front::resp::ServerFigures()> figures;
  // Set when the server begins to drain; /readyz then answers 503.
  std::atomic<bool> draining{false};
  // Why the shared store has never been usable; /readyz then answers 503 too. Any loop may call it.
  // Empty: there is no shared store.
  std::function<absl::Status()> store_problem;

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

// Reports the sessions that all loops have begun, by protocol.
void CollectSessions(std::span<const std::unique_ptr<class Fronts>> fronts, observe::Sink& sink);
// Reports the verdicts of forward-auth of all loops.
void CollectAuth(const FrontOptions& options, std::span<const std::unique_ptr<class Fronts>> fronts,
                 observe::Sink& sink);

class Fronts {
 public:
  // `shared` is null if no store is configured. `events` is the loop of this number.
  Fronts(FrontOptions& options, SharedStores* shared, net::EventLoop& events, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  // To be called when the loop has ended, if this object outlives it.
  void LeaveLoop() {
    if (editor_) editor_->LeaveLoop();
  }

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
  // HTTP without the deciding routes.
  net::SessionChooser Admin() { return Speaks({}, &admin_sessions_); }

  // Counters of the commands of Redis clients. Any thread may read them.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }
  const front::mux::Counters& sessions() const { return sessions_; }
  const gate::Counters& auth_counters() const { return auth_counters_; }
  const http::http2::Counters& http2_counters() const { return http2_counters_; }

 private:
  // The front for HTTP with answers in one form.
  struct HttpFront {
    HttpFront(Fronts& fronts, const answer::LimitAnswerOptions& answer);

    front::api::CheckHandler check;
    front::auth::AuthHandler auth;
    http::Router router;
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
  void AddAdminRoutes(http::Router& router);
  HttpFront& HttpIn(const Form& form);
  access::Post PostToLoop() const;
  answer::LimitAnswerOptions AnswerIn(const Form& form) const;
  gate::JudgeOptions JudgeOptionsOf() const;

  FrontOptions& options_;
  limiter::Checker checker_;
  net::EventLoop& events_;
  front::resp::Context resp_;
  http::http2::Counters http2_counters_;
  std::map<Form, HttpFront> http_;
  std::map<Form, SpoeFront> spoe_;
  std::optional<PostedEditor> editor_;
  http::Router admin_router_;
  front::mux::HandlerSessions admin_sessions_;
  gate::Counters auth_counters_;
  front::mux::Counters sessions_;
  Meter resp_meter_;
  Meter http_meter_;
  Meter spoe_meter_;
};

}  // namespace headgate::app
