#include "headgate/app/serve/fronts.h"

#include <utility>

#include "headgate/app/settings/version.h"
#include "headgate/front/resp/session.h"
#include "headgate/gate/verdict_metrics.h"

namespace headgate::app {

FrontOptions::FrontOptions(const Settings& settings, front::admin::AdminSources its_admin,
                           Engine& shared_engine, access::Access& shared_access)
    : admin(std::move(its_admin)),
      engine(shared_engine),
      access(shared_access),
      http({.body_bytes_max = settings.max_body_bytes,
            .hosts = http::KnownHosts(settings.known_host),
            .clock = &engine.clock().source()},
           settings.request_timeout),
      resp_name(engine.metrics().AddFront("resp")),
      http_name(engine.metrics().AddFront("http")),
      spoe_name(engine.metrics().AddFront("spoe")),
      has_auth(!settings.auth.empty() || !settings.auth_header.empty()),
      dialect(*wire::DialectByName(settings.rate_limit_fields)),
      retry_after_jitter_percent(static_cast<uint32_t>(settings.retry_after_jitter)),
      retry_after_jitter_max(settings.retry_after_jitter_max) {}

Fronts::HttpFront::HttpFront(Fronts& fronts, const answer::LimitAnswerOptions& answer)
    : check(fronts.checker_, answer, fronts.options_.reservation_secret),
      auth(fronts.checker_, answer, fronts.JudgeOptionsOf(), fronts.events_, fronts.auth_counters_),
      router("Headgate", fronts.options_.access, fronts.PostToLoop()),
      sessions(router, fronts.options_.http, fronts.http2_counters_) {
  check.AddRoutes(router);
  if (fronts.options_.has_auth) {
    auth.AddRoutes(router);
  } else {
    router.TurnOff("/auth", "this server has no mappings for forward-auth",
                   "start it with --auth FILE or --auth-header NAME");
  }
  front::admin::AddRoutes(fronts.options_.admin, router);
}

Fronts::SpoeFront::SpoeFront(Fronts& fronts, const answer::LimitAnswerOptions& options)
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
  context.on_vain = [log](uint32_t frame_bytes_max) {
    log->Warning(
        "spoe.connections_paced",
        {{"max_frame_size", uint64_t{frame_bytes_max}},
         {"reason",
          "HAProxy opens connections and asks nothing: a message does not fit "
          "into a frame"},
         {"effect", "its request gets no verdict; new connections wait 10ms"},
         {"hint", "send less in the spoe-message, or lower tune.bufsize to the frame size"}});
  };
  context.on_refused = [log](wire::SpopStatus status, std::string_view why) {
    log->Warning("spoe.connection_refused",
                 {{"status", uint64_t{static_cast<uint32_t>(status)}},
                  {"reason", why},
                  {"effect", "its requests get no verdict"},
                  {"hint", "docs/reference/mappings.md says how a spoe-message is written"}});
  };
}

Fronts::Fronts(FrontOptions& options, limiter::Checker& checker, net::EventLoop& events,
               uint32_t loop)
    : options_(options),
      checker_(checker),
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
      resp_meter_(options.engine.metrics(), options.resp_name, loop),
      http_meter_(options.engine.metrics(), options.http_name, loop),
      spoe_meter_(options.engine.metrics(), options.spoe_name, loop) {}

access::Post Fronts::PostToLoop() const {
  return [&events = events_](std::function<void()> work) { events.Post(std::move(work)); };
}

answer::LimitAnswerOptions Fronts::AnswerIn(const Form& form) const {
  const auto refusal = options_.refusals.find(form.refusal_file);
  return {.dialect = form.dialect.value_or(options_.dialect),
          .retry_after_jitter_percent = options_.retry_after_jitter_percent,
          .retry_after_jitter_max = options_.retry_after_jitter_max,
          .refusal = refusal == options_.refusals.end() ? nullptr : refusal->second,
          .partition_secret = options_.partition_secret,
          .clock = &options_.engine.clock().source()};
}

gate::JudgeOptions Fronts::JudgeOptionsOf() const {
  return {.mappings = options_.mappings,
          .repeats = options_.repeats,
          .secret = options_.repeats_secret,
          .clock = options_.engine.clock().source(),
          .on_token_refused = gate::LogTokensRefused(options_.log),
          .on_invalid = gate::LogInvalidRequests(options_.log)};
}

Fronts::HttpFront& Fronts::HttpIn(const Form& form) {
  return http_.try_emplace(form, *this, AnswerIn(form)).first->second;
}

net::SessionChooser Fronts::OnlySpoe(const Form& form) {
  front::spoe::Context& context =
      spoe_.try_emplace(form, *this, AnswerIn(form)).first->second.context;
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
                                   front::mux::HandlerSessions* http) {
  using Factory = front::mux::Sessions::Factory;
  return front::mux::Mux({.resp = std::move(resp),
                          .http1 = http == nullptr ? Factory() : http->Http1(),
                          .http2 = http == nullptr ? Factory() : http->Http2(),
                          .resp_meter = &resp_meter_,
                          .http_meter = &http_meter_},
                         sessions_);
}

front::mux::Sessions::Factory Fronts::Resp() {
  return [this](const net::Peer& peer) {
    return std::make_unique<front::resp::RespSession>(resp_, peer);
  };
}

}  // namespace headgate::app
