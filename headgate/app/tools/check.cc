#include "headgate/app/tools/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/entries.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/server_flags.h"
#include "headgate/app/tools/no_rule.h"
#include "headgate/base/clock.h"
#include "headgate/base/random_secret.h"
#include "headgate/client/http/ask.h"
#include "headgate/front/api/check_answer.h"
#include "headgate/limiter/checker.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"
#include "headgate/store/memory.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using wire::Json;

struct CheckArguments {
  ServerFlags server;
  std::optional<std::string> domain;
  std::vector<std::string> words;  // a domain, perhaps, and descriptors
  uint64_t cost = 1;
  bool peek = false;
  bool as_json = false;
  std::string timeout = "2s";
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  bool merge_domains = false;

  bool local() const { return !rules.empty() || !rule.empty(); }
};

// The command that shows, by the rules of these arguments, which rule applies to the first
// descriptor.
std::string ExplainCommand(const CheckArguments& arguments, const std::string& domain,
                           const Console& console) {
  std::vector<std::string> words = {std::string(console.program), "explain"};
  for (const std::string& path : arguments.rules) words.insert(words.end(), {"--rules", path});
  for (const std::string& text : arguments.rule) words.insert(words.end(), {"--rule", text});
  if (arguments.merge_domains) words.emplace_back("--merge-domains");
  words.push_back(domain.starts_with('-') || domain.find('=') != domain.npos ? "--domain=" + domain
                                                                             : domain);
  words.push_back(
      *std::find_if(arguments.words.begin(), arguments.words.end(),
                    [](const std::string& word) { return word.find('=') != word.npos; }));
  return ShellCommand(words);
}

std::optional<CheckArguments> Parse(const std::vector<std::string>& arguments,
                                    const Console& console) {
  CheckArguments parsed;
  ArgumentSpec spec{.command = "check",
                    .flags = {{"--domain", &parsed.domain},
                              {"--cost", &parsed.cost},
                              {"--timeout", &parsed.timeout},
                              {"--rules", &parsed.rules},
                              {"--rule", &parsed.rule},
                              {"--merge-domains", &parsed.merge_domains},
                              {"--peek", &parsed.peek},
                              {"--json", &parsed.as_json}},
                    .others = &parsed.words};
  parsed.server.AddTo(spec.flags);
  if (!ParseArguments(spec, arguments, console)) return std::nullopt;
  if (parsed.local() && parsed.server.server) {
    console.Error("--server and rules are both given",
                  "a server decides by its own rules: remove --server, or --rules and --rule");
    return std::nullopt;
  }
  return parsed;
}

std::string BodyOf(const CheckArguments& arguments, const DescriptorArguments& descriptors) {
  Json body = Json::Object({{"domain", descriptors.domain}, {"descriptors", Json::Array()}});
  // Peek asks about the cost and takes nothing, so both have the same body.
  for (const auto& descriptor : descriptors.descriptors) {
    Json entries = Json::Array();
    for (const NamedValue& entry : descriptor)
      entries.Append(Json::Object({{"key", entry.key}, {"value", entry.value}}));
    body["descriptors"].Append(
        Json::Object({{"entries", std::move(entries)}, {"cost", arguments.cost}}));
  }
  return body.Text();
}

// A server may state anything; what does not fit into a duration is shown as the longest one.
std::string ShowMs(const Json& ms) {
  constexpr auto kMax = static_cast<double>(
      std::chrono::floor<std::chrono::milliseconds>(base::kDurationMax).count());
  const double shown = std::clamp(ms.number(), 0.0, kMax);
  return rule::FormatDuration(std::chrono::milliseconds(static_cast<int64_t>(shown)));
}

// Whether the decision has the members that Headgate's have. Without a limit, no number is read.
bool IsDecision(const Json& decision) {
  const Json* const rule = decision.Find("rule");
  const Json* const limit = decision.Find("limit");
  if (rule == nullptr || limit == nullptr) return false;
  const bool has_numbers = limit->is_number() && decision["remaining"].is_number() &&
                           decision["reset_after_ms"].is_number() &&
                           decision["wait_ms"].is_number() &&
                           decision.Find("retry_after_ms") != nullptr;
  return decision["allowed"].is_bool() && (rule->is_null() || rule->is_string()) &&
         (limit->is_null() || (has_numbers && decision["shadow"].is_bool()));
}

// One line for people: "denied   login  limit 5, 0 left, retry in 10s, full again in 50s". A peek
// says what a check would answer.
std::string InWords(const Json& decision, bool peek, bool takes) {
  const bool allowed = decision["allowed"].truth();
  std::string line = fmt::format(
      "{}{:<8} {}", peek ? "would be " : "", allowed ? "allowed" : "denied",
      decision["rule"].is_null() ? "(no rule)" : rule::Printable(decision["rule"].text()));
  if (decision["limit"].is_null()) return line;
  const uint64_t limit = decision["limit"].count();
  const uint64_t remaining = decision["remaining"].count();
  const std::string_view shadow = decision["shadow"].truth() ? " (shadow)" : "";
  if (limit == 0) return fmt::format("{}  limit 0: nothing passes{}", line, shadow);
  line += fmt::format("  limit {}, {} left{}", limit, remaining,
                      peek && takes && allowed ? " after it" : "");
  if (!allowed) {
    const Json& retry = decision["retry_after_ms"];
    line += retry.is_null() ? ", can never pass: it asks for more than the limit"
                            : ", retry in " + ShowMs(retry);
  }
  if (decision["blocked_ms"].is_number()) line += ", blocked for " + ShowMs(decision["blocked_ms"]);
  if (decision["wait_ms"].number() > 0) line += ", wait " + ShowMs(decision["wait_ms"]);
  if (remaining < limit) line += ", full again in " + ShowMs(decision["reset_after_ms"]);
  return line.append(shadow);
}

// How the server decided without its shared store; empty if it decided with it, or if it has none.
std::string_view WithoutStore(const Json& decision) {
  const std::string_view mode = decision["mode"].text();
  if (mode == "local") return "by this instance's share of the limit (on_store_failure: local)";
  if (mode == "open") return "so the request passes (on_store_failure: allow)";
  if (mode == "closed") return "so the request is refused (on_store_failure: deny)";
  return {};
}

// Prints the answer and returns the exit status, or nothing if the answer does not come from
// Headgate. `hint_without_rule` is called only if no rule applied.
std::optional<int> Print(const std::string& answer, const CheckArguments& arguments,
                         const std::function<std::string()>& hint_without_rule,
                         const Console& console) {
  const Json parsed = Json::Parse(answer).value_or(nullptr);
  if (!parsed["allowed"].is_bool()) return std::nullopt;
  const int code = parsed["allowed"].truth() ? kExitOk : kExitDenied;
  if (arguments.as_json) {
    console.out << answer << (answer.ends_with('\n') ? "" : "\n");
    return code;
  }
  const std::vector<Json>& decisions = parsed["decisions"].items();
  if (!parsed["decisions"].is_array() || !std::ranges::all_of(decisions, IsDecision))
    return std::nullopt;
  bool ruled = false;
  std::string_view without_store;
  for (const Json& decision : decisions) {
    console.out << InWords(decision, arguments.peek, arguments.cost > 0) << '\n';
    ruled = ruled || !decision["rule"].is_null();
    if (without_store.empty()) without_store = WithoutStore(decision);
  }
  if (!ruled) console.Hint(hint_without_rule());
  if (!without_store.empty()) {
    console.Hint(fmt::format(
        "decided without the shared store, {}; the server's log has the reason", without_store));
  }
  return code;
}

// Prints why there is no answer, or none in HTTP.
int PrintFailure(const absl::Status& failure, const ServerFlags& server, const Console& console) {
  std::string hint(kAnotherProgramHint);
  if (absl::IsUnavailable(failure)) {
    hint = server.HintOnUnreachable(
        "start a server (headgate serve), or decide without one (--rules PATH)");
  }
  if (absl::IsUnauthenticated(failure)) hint = kCertificateHint;
  if (absl::IsDeadlineExceeded(failure))
    hint = "--timeout 10s waits longer; --server names another address";
  console.Error(std::string(failure.message()), hint);
  return kExitUnreachable;
}

// Prints a problem document and returns the exit status. Returns nothing if the document does not
// come from Headgate, whose documents always have a detail.
std::optional<int> PrintRefusal(const client::http::Answer& reply, const std::string& address,
                                const Console& console) {
  const Json problem = Json::Parse(reply.body).value_or(nullptr);
  const auto field = [&](const char* name) { return rule::Printable(problem[name].text()); };
  const std::string detail = field("detail");
  if (detail.empty()) return std::nullopt;
  std::string hint = field("hint");
  // The server's hints are about HTTP, and would mislead a person at a terminal.
  if (reply.status == 401) hint = kLoginHint;
  if (reply.status == 429)
    hint = fmt::format("wait a moment, and check the password before you {}", kLoginHint);
  const bool undecided = reply.status >= 500;
  if (hint.empty()) {
    hint = undecided ? "the server's log has the reason; try again later"
                     : "`headgate help check` shows the arguments";
  }
  console.Error(
      fmt::format("{} {} ({}): {}", address,
                  undecided ? "cannot decide now" : "refuses the request", reply.status, detail),
      hint);
  return undecided ? kExitUndecided : kExitUsage;
}

int AskServer(const CheckArguments& arguments, const DescriptorArguments& descriptors,
              const Console& console) {
  const auto server = arguments.server.Resolve(console);
  if (!server) return kExitUsage;
  const auto timeout = ParseTimeout(arguments.timeout, "--timeout 500ms", console);
  if (!timeout) return kExitUsage;
  const auto reply = client::http::PostJson(*server, arguments.peek ? "/v1/peek" : "/v1/check",
                                            BodyOf(arguments, descriptors), *timeout);
  if (!reply.ok()) return PrintFailure(reply.status(), arguments.server, console);
  std::optional<int> code;
  if (reply->status == 200 || reply->status == 429) {
    code = Print(
        reply->body, arguments,
        [&] { return HintWithoutRule(descriptors.domain, RulesOfServer(*server, *timeout)); },
        console);
  }
  // A login that is throttled has the status 429 of a denial, but no decision.
  if (!code && reply->status != 200)
    code = PrintRefusal(*reply, arguments.server.address(), console);
  if (code) return *code;
  console.Error(fmt::format("{} answers {}, but the answer is not from Headgate",
                            arguments.server.address(), reply->status),
                kAnotherProgramHint);
  return kExitUnreachable;
}

int DecideHere(const CheckArguments& arguments, const DescriptorArguments& descriptors,
               const Console& console) {
  const watch::RulesOfPaths loaded =
      LoadPaths(arguments.rules, arguments.rule, arguments.merge_domains, console);
  if (!loaded.result.ok()) {
    SayProblems(loaded.result.problems, console);
    return kExitUsage;
  }

  store::MemoryStore store({.max_buckets = 4096, .secret = base::RandomHashSecret()});
  limiter::Limiter limiter(store, nullptr);
  const base::Instant now = base::DisciplinedClock(base::SystemClock()).Now();
  absl::Status status = limiter.OnRules(loaded.result.rules, now);
  std::vector<std::vector<rule::Entry>> entries;
  for (const auto& descriptor : descriptors.descriptors) entries.push_back(EntriesOf(descriptor));
  std::vector<rule::Descriptor> asked;
  for (const auto& entry : entries) asked.push_back({.entries = entry, .cost = arguments.cost});
  limiter::Checker checker(limiter);
  limiter::Response response;
  const limiter::Request request{
      .domain = descriptors.domain,
      .descriptors = asked,
      .operation = arguments.peek ? limiter::Operation::kPeek : limiter::Operation::kTake};
  if (status.ok()) status = checker.Check(request, response, now);
  if (!status.ok()) {
    console.Error(std::string(status.message()), "`headgate help check` shows the arguments");
    return kExitUsage;
  }
  std::string answer;
  front::api::AppendAnswer(response, answer);
  const auto hint = [&] {
    KnownRules known;
    for (const rule::Rule& rule : loaded.result.rules->rules())
      known.paths_by_domain[rule.domain].push_back(rule.path);
    return HintWithoutRule(descriptors.domain, known,
                           ExplainCommand(arguments, descriptors.domain, console));
  };
  return *Print(answer, arguments, hint, console);
}

}  // namespace

int Check(const std::vector<std::string>& arguments, const Console& console) {
  const auto parsed = Parse(arguments, console);
  if (!parsed) return kExitUsage;
  const auto descriptors = ParseDescriptorArguments(parsed->domain, parsed->words);
  if (!descriptors.ok()) {
    console.Error(std::string(descriptors.status().message()),
                  "headgate check DOMAIN k=v,k=v…; quote a value that holds a comma");
    return kExitUsage;
  }
  return parsed->local() ? DecideHere(*parsed, *descriptors, console)
                         : AskServer(*parsed, *descriptors, console);
}

}  // namespace headgate::app
