#include "headgate/app/check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "headgate/app/arguments.h"
#include "headgate/app/entries.h"
#include "headgate/app/http_client.h"
#include "headgate/app/random_secret.h"
#include "headgate/app/rule_files.h"
#include "headgate/base/clock.h"
#include "headgate/front/http/check_answer.h"
#include "headgate/limiter/limiter.h"
#include "headgate/rule/duration.h"
#include "headgate/store/memory.h"

namespace headgate::app {
namespace {

using nlohmann::json;

struct CheckArguments {
  std::optional<std::string> server;
  std::string domain = "default";
  std::vector<std::string> descriptors;
  uint64_t cost = 1;
  bool peek = false;
  bool as_json = false;
  std::string timeout = "2s";
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  bool merge_domains = false;

  std::string server_address() const { return server.value_or("127.0.0.1:8080"); }
  bool local() const { return !rules.empty() || !rule.empty(); }
};

using Descriptors = std::vector<std::vector<NamedValue>>;

std::optional<CheckArguments> Parse(const std::vector<std::string>& arguments, const Console& console) {
  CheckArguments parsed;
  const ArgumentSpec spec{.command = "check",
                          .flags = {{"--server", &parsed.server},
                                    {"--domain", &parsed.domain},
                                    {"--cost", &parsed.cost},
                                    {"--timeout", &parsed.timeout},
                                    {"--rules", &parsed.rules},
                                    {"--rule", &parsed.rule},
                                    {"--merge-domains", &parsed.merge_domains},
                                    {"--peek", &parsed.peek},
                                    {"--json", &parsed.as_json}},
                          .others = &parsed.descriptors};
  if (!ParseArguments(spec, arguments, console)) return std::nullopt;
  if (parsed.descriptors.empty()) {
    console.Error("there is nothing to check", "headgate check api_key=k1,path=/search");
    return std::nullopt;
  }
  if (parsed.local() && parsed.server) {
    console.Error("--server and rules are both given", "a server decides by its own rules: leave one of them out");
    return std::nullopt;
  }
  return parsed;
}

std::string BodyOf(const CheckArguments& arguments, const Descriptors& descriptors) {
  json body = {{"domain", arguments.domain}, {"descriptors", json::array()}};
  // Peek asks about the cost and takes nothing, so both have the same body.
  for (const auto& descriptor : descriptors) {
    json entries = json::array();
    for (const NamedValue& entry : descriptor) entries.push_back({{"key", entry.key}, {"value", entry.value}});
    body["descriptors"].push_back({{"entries", std::move(entries)}, {"cost", arguments.cost}});
  }
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ShowMs(const json& ms) { return rule::FormatDuration(std::chrono::milliseconds(ms.get<int64_t>())); }

// One line for people: "denied   login  limit 5, 0 left, retry in 10s, full again in 50s".
std::string InWords(const json& decision) {
  const bool allowed = decision.at("allowed").get<bool>();
  std::string line = fmt::format("{:<8} {}", allowed ? "allowed" : "denied",
                                 decision.at("rule").is_null() ? "(no rule)" : decision.at("rule").get<std::string>());
  if (decision.at("limit").is_null()) return line;
  line += fmt::format("  limit {}, {} left", decision.at("limit").get<uint64_t>(),
                      decision.at("remaining").get<uint64_t>());
  if (!allowed) {
    const json& retry = decision.at("retry_after_ms");
    line += retry.is_null() ? ", can never pass: it asks for more than the limit" : ", retry in " + ShowMs(retry);
  }
  if (decision.at("wait_ms").get<int64_t>() > 0) line += ", wait " + ShowMs(decision.at("wait_ms"));
  line += ", full again in " + ShowMs(decision.at("reset_after_ms"));
  if (decision.at("shadow").get<bool>()) line += " (shadow)";
  return line;
}

int Print(const std::string& answer, const CheckArguments& arguments, const Console& console) {
  try {
    const json parsed = json::parse(answer);
    const bool allowed = parsed.at("allowed").get<bool>();
    if (arguments.as_json) {
      console.out << answer << (answer.ends_with('\n') ? "" : "\n");
    } else {
      for (const json& decision : parsed.at("decisions")) console.out << InWords(decision) << '\n';
    }
    return allowed ? kExitOk : kExitDenied;
  } catch (const json::exception&) {
    console.Error(fmt::format("{} does not answer as Headgate does", arguments.server_address()),
                  "is it another program's port?");
    return kExitUnreachable;
  }
}

// What a problem document says.
int PrintRefusal(const HttpReply& reply, const CheckArguments& arguments, const Console& console) {
  const json problem = json::parse(reply.body, nullptr, false);
  const auto field = [&](const char* name) {
    const bool there = problem.is_object() && problem.contains(name) && problem.at(name).is_string();
    return there ? problem.at(name).get<std::string>() : std::string();
  };
  const std::string detail = field("detail");
  console.Error(fmt::format("{} refuses the request ({}){}{}", arguments.server_address(), reply.status,
                            detail.empty() ? "" : ": ", detail),
                field("hint"));
  return reply.status < 500 ? kExitUsage : kExitUnreachable;
}

int AskServer(const CheckArguments& arguments, const Descriptors& descriptors, const Console& console) {
  const auto endpoint = net::ParseEndpoint(arguments.server_address());
  if (!endpoint.ok()) {
    console.Error(std::string(endpoint.status().message()), "--server 127.0.0.1:8080");
    return kExitUsage;
  }
  const auto timeout = rule::ParseDuration(arguments.timeout);
  if (!timeout.ok() || *timeout > std::chrono::hours(1)) {
    console.Error(fmt::format("--timeout '{}' is no duration up to 1h", arguments.timeout), "--timeout 500ms");
    return kExitUsage;
  }
  const auto reply =
      PostJson(*endpoint, arguments.peek ? "/v1/peek" : "/v1/check", BodyOf(arguments, descriptors), *timeout);
  if (!reply.ok()) {
    console.Error(std::string(reply.status().message()), "start one: headgate serve, or decide here: --rules PATH");
    return kExitUnreachable;
  }
  if (reply->status != 200 && reply->status != 429) return PrintRefusal(*reply, arguments, console);
  return Print(reply->body, arguments, console);
}

int DecideHere(const CheckArguments& arguments, const Descriptors& descriptors, const Console& console) {
  const RulesFromPaths loaded = LoadPaths(arguments.rules, arguments.rule, arguments.merge_domains);
  if (!loaded.result.ok()) {
    SayProblems(loaded, console);
    return kExitUsage;
  }

  store::MemoryStore store({.max_buckets = 4096, .secret = RandomSecret()});
  limiter::Limiter limiter(store, nullptr);
  const base::Instant now = base::DisciplinedClock(base::SystemClock()).Now();
  absl::Status status = limiter.OnRules(loaded.result.rules, now);
  std::vector<std::vector<rule::Entry>> entries;
  for (const auto& descriptor : descriptors) entries.push_back(EntriesOf(descriptor));
  std::vector<rule::Descriptor> asked;
  for (const auto& entry : entries) asked.push_back({.entries = entry, .cost = arguments.cost});
  limiter::Checker checker(limiter);
  limiter::Response response;
  const limiter::Request request{.domain = arguments.domain, .descriptors = asked};
  if (status.ok())
    status = arguments.peek ? checker.Peek(request, response, now) : checker.Check(request, response, now);
  if (!status.ok()) {
    console.Error(std::string(status.message()), "`headgate help check` shows how to ask");
    return kExitUsage;
  }
  std::string answer;
  front::http::AppendAnswer(response, answer);
  return Print(answer, arguments, console);
}

}  // namespace

int Check(const std::vector<std::string>& arguments, const Console& console) {
  const auto parsed = Parse(arguments, console);
  if (!parsed) return kExitUsage;
  Descriptors descriptors;
  for (const std::string& text : parsed->descriptors) {
    auto entries = ParseEntries(text);
    if (!entries.ok()) {
      console.Error(std::string(entries.status().message()), "write k=v,k=v; quote a value that holds a comma");
      return kExitUsage;
    }
    descriptors.push_back(*std::move(entries));
  }
  return parsed->local() ? DecideHere(*parsed, descriptors, console) : AskServer(*parsed, descriptors, console);
}

}  // namespace headgate::app
