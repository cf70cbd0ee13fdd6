#include "headgate/app/serve/fronts.h"

#include <algorithm>

#include "headgate/app/settings/version.h"
#include "headgate/front/admin/document_routes.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/admin/rule_routes.h"
#include "headgate/front/resp/session.h"

namespace headgate::app {
namespace {

// The longest document that the admin address takes.
constexpr uint64_t kDocumentBytesMax = uint64_t{8} << 20;

}  // namespace

FrontOptions::FrontOptions(const Settings& settings, Engine& shared_engine)
    : engine(shared_engine),
      access(
          {.credential = settings.credential,
           .users = settings.users_file.empty() ? nullptr : std::make_shared<access::UserTable>()}),
      http{.bounds = {.body_bytes_max = settings.max_body_bytes},
           .hosts = http::KnownHosts(settings.known_host),
           .clock = &engine.clock().source()},
      admin_http{.bounds = {.body_bytes_max = std::max(settings.max_body_bytes, kDocumentBytesMax)},
                 .hosts = http::KnownHosts(settings.known_host),
                 .clock = &engine.clock().source()},
      // So that the answer comes before the connection is closed.
      edits_answer_within(settings.request_timeout * 3 / 4),
      resp_name(engine.metrics().AddFront("resp")),
      http_name(engine.metrics().AddFront("http")),
      spoe_name(engine.metrics().AddFront("spoe")),
      has_auth(!settings.auth.empty() || !settings.auth_header.empty()),
      dialect(*wire::DialectByName(settings.rate_limit_fields)),
      retry_after_jitter_percent(static_cast<uint32_t>(settings.retry_after_jitter)) {}

Fronts::HttpFront::HttpFront(Fronts& fronts, const front::answer::LimitAnswerOptions& answer)
    : check(fronts.checker_, answer, fronts.options_.reservation_secret),
      auth(fronts.checker_, answer, fronts.JudgeOptionsOf(), fronts.events_, fronts.auth_counters_),
      router("Headgate", fronts.options_.access, fronts.PostToLoop()) {
  check.AddRoutes(router);
  if (fronts.options_.has_auth) {
    auth.AddRoutes(router);
  } else {
    router.TurnOff("/auth", "this server has no mappings for forward-auth",
                   "start it with --auth FILE or --auth-header NAME");
  }
  fronts.AddAdminRoutes(router);
}

Fronts::SpoeFront::SpoeFront(Fronts& fronts, const front::answer::LimitAnswerOptions& options)
    : answer(fronts.checker_, options),
      judge(fronts.checker_, answer, fronts.JudgeOptionsOf(), fronts.auth_counters_),
      context{.judge = judge,
              .answer = answer,
              .loop = fronts.events_,
              .counters = fronts.auth_counters_} {
  observe::Log* const log = fronts.options_.log;
  if (log == nullptr) return;
  context.on_left_out = [log](uint32_t frame_bytes_max) {
    log->Warning(
        "spoe.fields_left_out",
        {{"max_frame_size", uint64_t{frame_bytes_max}},
         {"effect", "HAProxy gets the status, and not all fields of the limit"},
         {"hint", "raise max-frame-size in the spoe-agent, or give the rule a shorter name"}});
  };
  context.on_several_messages = [log] {
    log->Warning("spoe.messages_refused",
                 {{"reason", "an event has several messages, and HAProxy sends them together"},
                  {"effect", "its requests get no verdict"},
                  {"hint", "give each event of the spoe-agent one spoe-message"}});
  };
}

Fronts::Fronts(FrontOptions& options, SharedStores* shared, net::EventLoop& events, uint32_t loop)
    : options_(options),
      checker_(shared == nullptr ? limiter::Checker(options.engine.limiter(), loop)
                                 : limiter::Checker(options.engine.limiter(), loop,
                                                    shared->decider(loop), shared->naming())),
      events_(events),
      resp_({.checker = checker_,
             .access = options.access,
             .post = PostToLoop(),
             .version = std::string(kVersion),
             .loop = loop,
             .clients = &options.clients,
             .scripts = &options.scripts,
             .figures = options.figures,
             .clock = &options.engine.clock().source()}),
      admin_router_("Headgate, the admin address", options.access, PostToLoop()),
      resp_meter_(options.engine.metrics(), options.resp_name, loop),
      http_meter_(options.engine.metrics(), options.http_name, loop),
      spoe_meter_(options.engine.metrics(), options.spoe_name, loop) {
  AddAdminRoutes(admin_router_);
  if (options.editor == nullptr) return;
  editor_.emplace(*options.editor, events, options.edits_answer_within);
  front::admin::AddDocumentRoutes(*editor_, admin_router_);
  front::admin::AddRuleRoutes(*editor_, admin_router_);
}

access::Post Fronts::PostToLoop() const {
  return [&events = events_](std::function<void()> work) { events.Post(std::move(work)); };
}

front::answer::LimitAnswerOptions Fronts::AnswerIn(Dialect dialect) const {
  return {.dialect = dialect.value_or(options_.dialect),
          .retry_after_jitter_percent = options_.retry_after_jitter_percent,
          .partition_secret = options_.partition_secret,
          .clock = &options_.engine.clock().source()};
}

front::auth::JudgeOptions Fronts::JudgeOptionsOf() const {
  return {.mappings = options_.mappings,
          .repeats = options_.repeats,
          .secret = options_.repeats_secret,
          .clock = options_.engine.clock().source()};
}

Fronts::HttpFront& Fronts::HttpIn(Dialect dialect) {
  const front::answer::LimitAnswerOptions answer = AnswerIn(dialect);
  return http_.try_emplace(answer.dialect, *this, answer).first->second;
}

net::SessionChooser Fronts::OnlySpoe(Dialect dialect) {
  const front::answer::LimitAnswerOptions answer = AnswerIn(dialect);
  front::spoe::Context& context =
      spoe_.try_emplace(answer.dialect, *this, answer).first->second.context;
  return [this, &context](std::span<const char>, const net::Peer& peer, net::Room room) {
    net::SessionChoice choice{.made = true};
    if (room == net::Room::kNone) return choice;
    choice.session = std::make_unique<front::spoe::SpoeSession>(context, peer);
    choice.meter = &spoe_meter_;
    sessions_.spoe.Add();
    return choice;
  };
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

front::mux::Sessions::Factory Fronts::Http(http::Handler& handler, const http::Options& options) {
  return [&handler, &options](const net::Peer& peer) {
    return std::make_unique<http::Session>(handler, options, peer);
  };
}

void Fronts::AddAdminRoutes(http::Router& router) {
  Engine& engine = options_.engine;
  front::admin::AddRoutes(
      {.rules = [&engine] { return engine.limiter().rules(); },
       .metrics = [&engine] { return engine.metrics().Render(); },
       .readiness =
           [&options = options_] {
             if (options.draining.load(std::memory_order_relaxed))
               return absl::UnavailableError("draining: the server is going down");
             return options.store_problem ? options.store_problem() : absl::OkStatus();
           }},
      router);
}

void CollectSessions(std::span<const std::unique_ptr<Fronts>> fronts, observe::Sink& sink) {
  uint64_t resp = 0;
  uint64_t http = 0;
  uint64_t spoe = 0;
  for (const auto& front : fronts) {
    resp += front->sessions().resp.value();
    http += front->sessions().http.value();
    spoe += front->sessions().spoe.value();
  }
  sink.Set(observe::Metric::kSessions, {"resp"}, resp);
  sink.Set(observe::Metric::kSessions, {"http"}, http);
  sink.Set(observe::Metric::kSessions, {"spoe"}, spoe);
}

void CollectAuth(const FrontOptions& options, std::span<const std::unique_ptr<Fronts>> fronts,
                 observe::Sink& sink) {
  using observe::Metric;
  std::array<uint64_t, front::auth::kOutcomeCount> outcomes{};
  uint64_t repeated = 0;
  uint64_t held = 0;
  for (const auto& front : fronts) {
    const front::auth::Counters& counters = front->auth_counters();
    for (size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += counters.outcomes[i].value();
    repeated += counters.repeated.value();
    held += counters.held_begun.value() - counters.held_ended.value();
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    sink.Set(Metric::kAuthRequests, {front::auth::Name(static_cast<front::auth::Outcome>(i))},
             outcomes[i]);
  }
  sink.Set(Metric::kAuthRepeated, {}, repeated);
  sink.Set(Metric::kAuthForgotten, {}, options.repeats.forgotten());
  sink.Set(Metric::kAuthHeld, {}, held);
}

}  // namespace headgate::app
