#include "headgate/app/tools/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "headgate/app/runtime/file_plan.h"
#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/server_flags.h"
#include "headgate/app/tools/no_rule.h"
#include "headgate/base/clock.h"
#include "headgate/bench/load.h"
#include "headgate/bench/report.h"
#include "headgate/client/http/ask.h"
#include "headgate/files/files.h"
#include "headgate/net/tls_context.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

constexpr base::Duration kSecond = std::chrono::seconds(1);
// How long reading the rules from the server may take.
constexpr base::Duration kLookTimeout = std::chrono::seconds(2);
constexpr uint64_t kConnectionsMax = 50'000;
constexpr uint64_t kRateMax = 10'000'000;
// Open files besides the connections: the standard streams, the event loop, the plot.
constexpr uint64_t kFilesBesides = 16;

struct BenchArguments {
  ServerFlags server;
  bool http = false;
  uint64_t connections = 50;
  uint64_t rate = 0;
  uint64_t pipeline = 1;
  uint64_t keys = 1000;
  std::string duration = "10s";
  std::optional<std::string> domain;
  std::optional<std::string> key;
  std::optional<std::string> plot;
  bool as_json = false;
};

struct Plan {
  client::http::ServerAccess server;
  bench::LoadOptions load;
  base::Duration duration{0};
};

std::optional<Plan> PlanOf(const BenchArguments& arguments, const Console& console) {
  const auto refuse = [&](std::string_view what, std::string_view hint) {
    console.Error(what, hint);
    return std::nullopt;
  };
  auto server = arguments.server.Resolve(console);
  if (!server) return std::nullopt;
  const auto duration = rule::ParseDuration(arguments.duration);
  if (!duration.ok() || *duration < kSecond || *duration > std::chrono::hours(24))
    return refuse(
        fmt::format("--duration '{}' is not a duration from 1s to 24h", arguments.duration),
        "--duration 30s");
  if (arguments.connections < 1 || arguments.connections > kConnectionsMax)
    return refuse(fmt::format("--connections must be from 1 to {}", kConnectionsMax),
                  "--connections 50 is the default");
  if (arguments.rate > kRateMax)
    return refuse(fmt::format("--rate must be at most {}", kRateMax),
                  "--rate 0 sends as many requests as are answered");
  if (arguments.keys < 1) return refuse("--keys must be at least 1", "--keys 1 asks about one key");
  if (arguments.pipeline < 1 || arguments.pipeline > 1000)
    return refuse("--pipeline must be from 1 to 1000", "--pipeline 1 is the default");
  if (arguments.pipeline > 1 && (arguments.http || arguments.rate > 0))
    return refuse("--pipeline is for CL.THROTTLE without --rate",
                  "remove --pipeline, or --http and --rate");
  if (!arguments.http && (arguments.domain || arguments.key))
    return refuse("--domain and --key are for /v1/check; CL.THROTTLE has no rules",
                  "add --http, or remove --domain and --key");
  if (arguments.plot) {
    // Checked before the run, because its result would be lost.
    const absl::Status writable = files::CheckOutput(*arguments.plot);
    if (!writable.ok())
      return refuse(fmt::format("--plot: {}", std::string(writable.message())),
                    "choose another file with --plot");
  }
  Plan plan{.server = *server,
            .load = {.talk = {.http = arguments.http,
                              .domain = arguments.domain.value_or("default"),
                              .key = arguments.key.value_or("api_key")},
                     .connections = static_cast<uint32_t>(arguments.connections),
                     .rate = arguments.rate,
                     .pipeline = static_cast<uint32_t>(arguments.pipeline),
                     .keys = arguments.keys},
            .duration = *duration};
  plan.load.server = net::TargetOf(server->endpoint);
  if (server->tls) {
    auto tls = net::TlsContext::Load({.ca_file = server->ca_file});
    if (!tls.ok()) return refuse(std::string(tls.status().message()), kCertificateHint);
    plan.load.tls = *std::move(tls);
  }
  plan.load.tls_name = std::move(server->tls_name);
  plan.load.talk.credential = std::move(server->credential);
  return plan;
}

// Whether the system allows this many connections at once. Raises the soft limit on open files.
bool AllowConnections(uint64_t connections, const Console& console) {
  const uint64_t open_files_max = RaiseOpenFiles();
  const uint64_t needed = connections + kFilesBesides;
  if (open_files_max == 0 || needed <= open_files_max) return true;
  console.Error(fmt::format("the system allows {} open files; --connections {} needs {}",
                            open_files_max, connections, needed),
                "raise `ulimit -n`, or lower --connections");
  return false;
}

// Whether the answer to a check says that no rule applies. Answers that are not Headgate's say
// nothing about rules; the load reports them.
bool SaysNoRule(const std::string& answer) {
  const wire::Json parsed = wire::Json::Parse(answer).value_or(nullptr);
  const wire::Json* const rule = parsed["decisions"][size_t{0}].Find("rule");
  return rule != nullptr && rule->is_null();
}

// If no rule applies to the requests, they all pass, and the rates are not those of decisions.
void WarnWithoutRule(const Plan& plan, const Console& console) {
  using wire::Json;
  const bench::TalkOptions& talk = plan.load.talk;
  const Json entry = Json::Object({{"key", talk.key}, {"value", "bench0"}});
  const Json descriptor = Json::Object({{"entries", Json::Array({entry})}});
  const Json body =
      Json::Object({{"domain", talk.domain}, {"descriptors", Json::Array({descriptor})}});
  const auto reply = client::http::PostJson(plan.server, "/v1/peek", body.Text(), kLookTimeout);
  if (!reply.ok() || !SaysNoRule(reply->body)) return;
  console.err << fmt::format(
      "warning: no rule applies to the key {} in the domain {}: all requests "
      "pass\n",
      rule::Quote(talk.key), rule::Quote(talk.domain));
  console.Hint(HintWithoutRule(talk.domain, RulesOfServer(plan.server, kLookTimeout)));
}

// Runs the load, and shows its progress once a second. Returns false if it fails.
bool Run(bench::Load& load, net::EventLoop& loop, const Plan& plan, const Console& console) {
  const auto failed = [&] { return !load.failure().ok(); };
  if (!loop.RunUntil([&] { return load.connected() || failed(); }, plan.load.timeout + kSecond) ||
      failed())
    return false;
  load.Start();
  const base::BootTime begin = loop.Now();
  bench::LoadCounts before;
  while (!failed() && loop.Now() - begin < plan.duration) {
    loop.RunUntil(failed, std::min(kSecond, plan.duration - (loop.Now() - begin)));
    const auto elapsed = std::chrono::round<std::chrono::seconds>(loop.Now() - begin);
    console.err << fmt::format("{:>4}s  {}/s  p99 {}\n", elapsed.count(),
                               load.counts().answered() - before.answered(),
                               bench::ShowLatency(load.latencies().Quantile(0.99)));
    before = load.counts();
  }
  return !failed();
}

std::string HintAfter(const absl::Status& failure, const ServerFlags& server) {
  if (absl::IsUnauthenticated(failure)) return std::string(kCertificateHint);
  if (absl::IsPermissionDenied(failure)) return std::string(kLoginHint);
  if (absl::IsDataLoss(failure)) return std::string(kAnotherProgramHint);
  return server.HintOnUnreachable(
      "start a server (headgate serve), or name its address with --server");
}

// If no answer was a decision, the rates are not those of decisions.
void SayIfAllFailed(const bench::LoadCounts& counts, const BenchArguments& arguments,
                    const Console& console) {
  if (counts.answered() == 0) {
    console.Error(fmt::format("no answer came within {}", arguments.duration),
                  "--duration 1m waits longer; `headgate check` shows the answer to one request");
  }
  if (counts.errors == 0 || counts.errors < counts.answered()) return;
  const auto is = [&](std::string_view kind) { return counts.errors_by_kind.contains(kind); };
  const bool of_login = is("401") || is("403") || is("429") || is("NOAUTH") || is("NOPERM");
  console.Error(fmt::format("no answer is a decision; the first is {}", counts.first_error),
                of_login ? kLoginHint : "`headgate check` shows the answer to one request");
}

}  // namespace

int Bench(const std::vector<std::string>& arguments, const Console& console) {
  BenchArguments parsed;
  ArgumentSpec spec{.command = "bench",
                    .flags = {{"--http", &parsed.http},
                              {"--connections", &parsed.connections},
                              {"--rate", &parsed.rate},
                              {"--pipeline", &parsed.pipeline},
                              {"--keys", &parsed.keys},
                              {"--duration", &parsed.duration},
                              {"--domain", &parsed.domain},
                              {"--key", &parsed.key},
                              {"--plot", &parsed.plot},
                              {"--json", &parsed.as_json}}};
  parsed.server.AddTo(spec.flags);
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  const std::optional<Plan> plan = PlanOf(parsed, console);
  if (!plan || !AllowConnections(plan->load.connections, console)) return kExitUsage;

  if (parsed.http) WarnWithoutRule(*plan, console);
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  bench::Load load(loop, plan->load);
  if (!Run(load, loop, *plan, console)) {
    const bool timed_out = load.failure().ok();
    console.Error(timed_out ? fmt::format("{} does not answer", parsed.server.address())
                            : std::string(load.failure().message()),
                  HintAfter(load.failure(), parsed.server));
    return kExitUnreachable;
  }
  const bench::Report report{.server = parsed.server.address(),
                             .http = parsed.http,
                             .rate_asked = parsed.rate,
                             .connections = plan->load.connections,
                             .pipeline = plan->load.pipeline,
                             .duration = plan->duration,
                             .counts = load.counts(),
                             .latencies = load.latencies()};
  // The report may contain text from the server, so it is made printable.
  console.out << (parsed.as_json ? AsJson(report) : rule::PrintableLines(AsText(report)));
  SayIfAllFailed(report.counts, parsed, console);
  const int code =
      report.counts.errors == 0 && report.counts.answered() > 0 ? kExitOk : kExitDenied;
  if (!parsed.plot) return code;
  console.out.flush();  // the picture may go to the same place
  const absl::Status written = files::WriteOutput(*parsed.plot, AsPlot(report));
  if (written.ok()) return code;
  console.Error(fmt::format("--plot: {}", std::string(written.message())),
                "choose another file with --plot");
  return code == kExitOk ? kExitOutput : code;
}

}  // namespace headgate::app
