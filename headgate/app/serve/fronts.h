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
#include "headgate/front/mux/mux.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/spoe/session.h"
#include "headgate/http/router.h"
#include "headgate/http/session.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Shared by the fronts of all loops, and outlives them.
struct FrontOptions {
  FrontOptions(const Settings& settings, Engine& engine);

  Engine& engine;
  observe::Log* log = nullptr;  // null: nothing is logged
  access::Access access;
  http::Options http;
  http::Options admin_http;  // of the admin address
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
  const uint32_t retry_after_jitter_percent;
  std::string partition_secret;    // empty: no pk
  std::string reservation_secret;  // empty: that of the store
  front::auth::LiveMappings mappings;
  front::auth::Repeats repeats{{}};
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

  // The protocols that an address of each kind speaks, on this loop. `dialect`: of its answers over
  // HTTP and SPOE; absent: the default.
  using Dialect = std::optional<wire::RateLimitDialect>;
  net::SessionChooser All(Dialect dialect = {}) {
    return Speaks(Resp(), Http(HttpIn(dialect).router));
  }
  net::SessionChooser OnlyResp() { return Speaks(Resp(), {}); }
  net::SessionChooser OnlyHttp(Dialect dialect = {}) {
    return Speaks({}, Http(HttpIn(dialect).router));
  }
  net::SessionChooser OnlySpoe(Dialect dialect = {});
  // HTTP without the deciding routes.
  net::SessionChooser Admin() { return Speaks({}, Http(admin_router_, options_.admin_http)); }

  // Counters of the commands of Redis clients. Any thread may read them.
  const front::resp::Counters& resp_counters() const { return resp_.counters; }
  const front::mux::Counters& sessions() const { return sessions_; }
  const front::auth::Counters& auth_counters() const { return auth_counters_; }

 private:
  // The front for HTTP with answers in one dialect.
  struct HttpFront {
    HttpFront(Fronts& fronts, const front::answer::LimitAnswerOptions& answer);

    front::api::CheckHandler check;
    front::auth::AuthHandler auth;
    http::Router router;
  };
  // The agent for HAProxy with answers in one dialect.
  struct SpoeFront {
    SpoeFront(Fronts& fronts, const front::answer::LimitAnswerOptions& options);

    front::answer::LimitAnswer answer;
    front::auth::Judge judge;
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

  net::SessionChooser Speaks(front::mux::Sessions::Factory resp,
                             front::mux::Sessions::Factory http);
  front::mux::Sessions::Factory Resp();
  front::mux::Sessions::Factory Http(http::Handler& handler) {
    return Http(handler, options_.http);
  }
  front::mux::Sessions::Factory Http(http::Handler& handler, const http::Options& options);
  void AddAdminRoutes(http::Router& router);
  HttpFront& HttpIn(Dialect dialect);
  access::Post PostToLoop() const;
  front::answer::LimitAnswerOptions AnswerIn(Dialect dialect) const;
  front::auth::JudgeOptions JudgeOptionsOf() const;

  FrontOptions& options_;
  limiter::Checker checker_;
  net::EventLoop& events_;
  front::resp::Context resp_;
  std::map<wire::RateLimitDialect, HttpFront> http_;
  std::map<wire::RateLimitDialect, SpoeFront> spoe_;
  std::optional<PostedEditor> editor_;
  http::Router admin_router_;
  front::auth::Counters auth_counters_;
  front::mux::Counters sessions_;
  Meter resp_meter_;
  Meter http_meter_;
  Meter spoe_meter_;
};

}  // namespace headgate::app
