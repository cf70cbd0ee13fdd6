#include "headgate/app/tools/rules_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/entries.h"
#include "headgate/app/settings/server_flags.h"
#include "headgate/app/tools/rules_text.h"
#include "headgate/base/percent.h"
#include "headgate/client/http/ask.h"
#include "headgate/files/files.h"
#include "headgate/rule/edit/rollout_edit.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using wire::Json;

constexpr size_t kTextBytesMax = size_t{16} << 20;
constexpr std::string_view kAdminAddress = "127.0.0.1:8081";
constexpr std::string_view kYaml = "Content-Type: application/yaml";
constexpr std::string_view kJson = "Content-Type: application/json";

struct RulesArguments {
  ServerFlags server;
  std::string verb{};
  std::vector<std::string> words{};  // behind the verb
  std::optional<std::string> key{};
  std::optional<std::string> percent{};
  bool shadow = false;
  bool promote = false;
  bool stop = false;
  bool dry_run = false;
  bool yes = false;
  bool as_json = false;
  std::string timeout = "10s";
};

// The subject of a command: a document, the limit of a key, or a rule.
struct Subject {
  std::string label;  // for people
  std::string path;   // of the API
};

// The unreserved characters of RFC 3986, section 2.3, stay.
std::string Encoded(std::string_view text) { return base::PercentEncoded(text, "-._~"); }

class RulesCommand {
 public:
  RulesCommand(const RulesArguments& arguments, client::http::ServerAccess server,
               base::Duration timeout, const Console& console)
      : arguments_(arguments), server_(std::move(server)), timeout_(timeout), console_(console) {}

  int Run() {
    const std::string& verb = arguments_.verb;
    if (verb == "list") return List();
    if (verb == "get") return Get();
    if (verb == "put") return Put();
    if (verb == "delete") return Delete();
    if (verb == "history") return History();
    if (verb == "rollback") return RollBack();
    if (verb == "rollout") return Rollout();
    return Confirm();
  }

 private:
  static constexpr int kStatusOk = 200;
  static constexpr int kStatusCreated = 201;

  // ---- The words of the command

  int Usage(std::string_view what, std::string_view hint) {
    console_.Error(what, hint);
    return kExitUsage;
  }

  // The subject that the first words name, and the words behind it.
  std::optional<Subject> TakeSubject(std::span<const std::string>& words) {
    if (arguments_.key) {
      return Subject{.label = fmt::format("the limit of key {}", rule::Quote(*arguments_.key)),
                     .path = "/v1/limits/" + Encoded(*arguments_.key)};
    }
    if (words.empty()) {
      Usage(fmt::format("`headgate rules {}` needs a name", arguments_.verb),
            "the name of a document, as `headgate rules list` shows it; DOMAIN k=v,… for one rule; "
            "or --key KEY for the limit of one API key");
      return std::nullopt;
    }
    const std::string first = words[0];
    words = words.subspan(1);
    if (words.empty() || !IsDescriptor(words[0]))
      return Subject{.label = first, .path = "/v1/documents/" + Encoded(first)};
    return TakeRule(first, words);
  }

  static bool IsDescriptor(const std::string& word) {
    return word.find('=') != std::string::npos && ::access(word.c_str(), F_OK) != 0;
  }

  std::optional<Subject> TakeRule(const std::string& domain, std::span<const std::string>& words) {
    Subject subject{.label = domain + " " + words[0], .path = "/v1/rules/" + Encoded(domain)};
    const auto entries = ParseEntries(words[0]);
    if (!entries.ok()) {
      Usage(std::string(entries.status().message()), "headgate rules get DOMAIN k=v,k=v");
      return std::nullopt;
    }
    // "k=" is the rule for any value.
    for (const NamedValue& entry : *entries) {
      subject.path += "/" + Encoded(entry.key);
      if (!entry.value.empty()) subject.path += "=" + Encoded(entry.value);
    }
    words = words.subspan(1);
    return subject;
  }

  bool NoMoreWords(std::span<const std::string> words) {
    if (words.empty()) return true;
    Usage(fmt::format("`headgate rules {}` does not take '{}'", arguments_.verb, words[0]),
          "`headgate help rules` shows the arguments");
    return false;
  }

  // ---- Questions and answers

  // Nothing after an error on the console; `code_` is then the exit status. An answer of status 200
  // or 201 is given back, and 404 of Headgate's if `may_be_missing`.
  std::optional<client::http::Answer> Ask(const client::http::Request& request,
                                          bool may_be_missing = false) {
    auto reply = client::http::Ask(server_, request, timeout_);
    if (!reply.ok()) {
      console_.Error(std::string(reply.status().message()),
                     absl::IsUnauthenticated(reply.status())
                         ? std::string(kCertificateHint)
                         : arguments_.server.HintOnUnreachable(
                               "rules are changed over the admin address; give it with --server"));
      code_ = kExitUnreachable;
      return std::nullopt;
    }
    if (reply->status == kStatusOk || reply->status == kStatusCreated) return *std::move(reply);
    const Json problem = Json::Parse(reply->body).value_or(nullptr);
    if (may_be_missing && reply->status == 404 && !TextIn(problem, "detail").empty())
      return *std::move(reply);
    SayRefusal(reply->status, problem);
    return std::nullopt;
  }

  // The text of a document, with the version that it has.
  std::optional<client::http::Answer> AskForText(const std::string& path,
                                                 bool may_be_missing = false) {
    auto reply = Ask({.method = "GET", .target = path}, may_be_missing);
    if (!reply || reply->status == 404 || !reply->etag.empty()) return reply;
    NotHeadgate(reply->status);
    return std::nullopt;
  }

  int NotHeadgate(int status) {
    console_.Error(fmt::format("{} answers {}, but the answer is not from Headgate",
                               arguments_.server.address(), status),
                   kAnotherProgramHint);
    return code_ = kExitUnreachable;
  }

  // Empty if there is no text of this name.
  static std::string TextIn(const Json& object, std::string_view name) {
    return rule::Printable(object[name].text());
  }

  void SayRefusal(int status, const Json& problem) {
    const std::string detail = TextIn(problem, "detail");
    if (detail.empty()) {
      NotHeadgate(status);
      return;
    }
    std::string hint = TextIn(problem, "hint");
    constexpr std::string_view kNames = "GET /v1/documents lists the names";
    if (hint.starts_with(kNames))
      hint = "`headgate rules list` shows the names" + hint.substr(kNames.size());
    if (status == 401 || (status == 403 && hint.find("rules list") == hint.npos)) hint = kLoginHint;
    if (status == 412) hint = "somebody else was faster: run the command again";
    if (status == 404 && detail == "this path does not exist") hint = HintOnNoPath();
    code_ = status >= 500 ? kExitUndecided : kExitUsage;
    console_.Error(detail, hint);
    for (const Json& one : problem["problems"].items()) {
      console_.err << "  " << TextIn(one, "place");
      if (one["line"].is_number())
        console_.err << ':' << one["line"].whole() << ':' << one["column"].whole(1);
      console_.err << ": " << TextIn(one, "message") << '\n';
      if (const std::string help = TextIn(one, "hint"); !help.empty())
        console_.err << "    hint: " << help << '\n';
    }
  }

  // The address is not an admin address, or it is that of a sidecar without rules.
  static std::string HintOnNoPath() {
    return "rules are changed over the admin address of `headgate serve`, or of a sidecar with "
           "rules; give it with --server";
  }

  // Prints the raw JSON, or the text for people. Without a text (the answer was not Headgate's), an
  // error is printed.
  int Show(const client::http::Answer& reply, const std::optional<std::string>& text) {
    if (!text) return NotHeadgate(reply.status);
    if (arguments_.as_json) return Print(reply);
    console_.out << *text;
    return kExitOk;
  }

  // The text on stdout ends with a line end.
  int Print(const client::http::Answer& reply) {
    console_.out << reply.body << (reply.body.ends_with('\n') ? "" : "\n");
    return kExitOk;
  }

  // ---- Reading

  int List() {
    if (!NoMoreWords(arguments_.words)) return kExitUsage;
    const auto reply = Ask({.method = "GET", .target = "/v1/documents"});
    if (!reply) return code_;
    return Show(*reply, DocumentsText(reply->body));
  }

  int Get() {
    std::span<const std::string> words = arguments_.words;
    const auto subject = TakeSubject(words);
    if (!subject || !NoMoreWords(words)) return kExitUsage;
    const auto reply = AskForText(subject->path);
    return reply ? Print(*reply) : code_;
  }

  int History() {
    std::string path = "/v1/history?count=50";
    std::span<const std::string> words = arguments_.words;
    if (arguments_.key) {
      path += "&key=" + Encoded(*arguments_.key);
    } else if (!words.empty()) {
      path += "&document=" + Encoded(words[0]);
      words = words.subspan(1);
    }
    if (!NoMoreWords(words)) return kExitUsage;
    const auto reply = Ask({.method = "GET", .target = path});
    if (!reply) return code_;
    return Show(*reply, HistoryText(reply->body));
  }

  // ---- Changing

  int Put() {
    std::span<const std::string> words = arguments_.words;
    const auto subject = TakeSubject(words);
    if (!subject) return kExitUsage;
    const std::string file = words.empty() ? "-" : words[0];
    if (!NoMoreWords(words.empty() ? words : words.subspan(1))) return kExitUsage;
    const auto text = TextOf(file);
    if (!text) return code_;
    const auto now = AskForText(subject->path, true);
    if (!now) return code_;
    const std::string condition =
        now->status == 404 ? "If-None-Match: *" : "If-Match: " + now->etag;
    return Change(*subject,
                  {.method = "PUT",
                   .target = subject->path,
                   .fields = {condition, std::string(kYaml)},
                   .body = *text},
                  file == "-");
  }

  // The text of a file, or of stdin. Nothing after an error.
  std::optional<std::string> TextOf(const std::string& file) {
    if (file == "-")
      return std::string(std::istreambuf_iterator<char>(std::cin),
                         std::istreambuf_iterator<char>());
    auto read = files::ReadFile(file, kTextBytesMax);
    if (read.ok()) return *std::move(read);
    code_ = Usage(std::string(read.status().message()), "name a file, or - for stdin");
    return std::nullopt;
  }

  int Delete() {
    std::span<const std::string> words = arguments_.words;
    const auto subject = TakeSubject(words);
    if (!subject || !NoMoreWords(words)) return kExitUsage;
    return ChangeAsItIs(*subject, "DELETE", subject->path);
  }

  // Makes a change without a text, such as a deletion, to the current version.
  int ChangeAsItIs(const Subject& subject, const std::string& method, const std::string& path) {
    const auto now = AskForText(subject.path);
    if (!now) return code_;
    client::http::Request request{
        .method = method, .target = path, .fields = {"If-Match: " + now->etag}};
    if (method == "POST") {
      request.fields.emplace_back(kYaml);
      request.body = "{}";
    }
    return Change(subject, request, false);
  }

  int Rollout() {
    std::span<const std::string> words = arguments_.words;
    const auto rule = TakeSubject(words);
    if (!rule) return kExitUsage;
    constexpr std::string_view kRules = "/v1/rules/";
    const int given = (arguments_.percent ? 1 : 0) + (arguments_.shadow ? 1 : 0) +
                      (arguments_.promote ? 1 : 0) + (arguments_.stop ? 1 : 0);
    if (!rule->path.starts_with(kRules) || given != 1) {
      return Usage(
          "a roll-out is of one rule, and needs one of --percent, --shadow, --promote and "
          "--stop",
          "headgate rules rollout DOMAIN k=v --percent 5 LIMITS.yaml");
    }
    const std::string rest = rule->path.substr(kRules.size());
    if (arguments_.promote || arguments_.stop) {
      if (!NoMoreWords(words)) return kExitUsage;
      return arguments_.promote ? ChangeAsItIs(*rule, "POST", "/v1/promote/" + rest)
                                : ChangeAsItIs(*rule, "DELETE", "/v1/rollouts/" + rest);
    }
    std::string limits;
    if (!words.empty()) {
      const auto text = TextOf(words[0]);
      if (!text || !NoMoreWords(words.subspan(1))) return kExitUsage;
      limits = *text;
    }
    const auto rollout = rule::edit::RolloutWith(limits, arguments_.percent);
    if (!rollout.ok()) {
      const std::string why(rollout.status().message());
      return Usage(words.empty() || why.find(": ") == why.npos ? why : words[0] + ":" + why,
                   "a file has rate_limit or rate_limits, as a rule file has them");
    }
    const auto now = AskForText(rule->path);
    if (!now) return code_;
    return Change(*rule,
                  {.method = "PUT",
                   .target = "/v1/rollouts/" + rest,
                   .fields = {"If-Match: " + now->etag, std::string(kYaml)},
                   .body = *rollout},
                  !words.empty() && words[0] == "-");
  }

  int RollBack() {
    std::span<const std::string> words = arguments_.words;
    const auto subject = TakeSubject(words);
    if (!subject) return kExitUsage;
    if (words.size() > 1) {
      return Usage("`headgate rules rollback` takes a document, and perhaps a change",
                   "headgate rules rollback NAME [CHANGE]; `headgate rules history NAME` lists the "
                   "changes");
    }
    const auto now = AskForText(subject->path, true);
    if (!now) return code_;
    Json body;
    body["expected_version"] =
        now->etag.size() > 2 ? now->etag.substr(1, now->etag.size() - 2) : "";
    arguments_.key ? body["key"] = *arguments_.key : body["document"] = subject->label;
    if (!words.empty()) body["change"] = words[0];
    return Change(*subject,
                  {.method = "POST",
                   .target = "/v1/rollback",
                   .fields = {std::string(kJson)},
                   .body = body.Text()},
                  false);
  }

  int Confirm() {
    if (!NoMoreWords(arguments_.words)) return kExitUsage;
    const auto reply = Ask(
        {.method = "POST", .target = "/v1/confirm", .fields = {std::string(kJson)}, .body = "{}"});
    if (!reply) return code_;
    const Json answer = Json::Parse(reply->body).value_or(nullptr);
    if (!answer["confirmed"].is_bool()) return NotHeadgate(reply->status);
    return Show(*reply, "confirmed: documents that were deleted are gone\n");
  }

  // Shows what would change, asks, and writes.
  int Change(const Subject& subject, const client::http::Request& request, bool stdin_is_used) {
    client::http::Request dry = request;
    dry.target += "?dry_run=true";
    const auto preview = Ask(dry);
    if (!preview) return code_;
    const std::optional<ShownChange> shown = ShowChange(preview->body);
    if (!shown) return NotHeadgate(preview->status);
    if (!arguments_.as_json) console_.out << shown->text;
    if (arguments_.dry_run || !shown->changes)
      return arguments_.as_json ? Print(*preview) : kExitOk;
    if (!arguments_.yes && !Agrees(subject, stdin_is_used)) return code_;
    const auto done = Ask(request);
    if (!done) return code_;
    if (!ShowChange(done->body)) return NotHeadgate(done->status);
    return Show(*done, fmt::format("done: {}\n", rule::Printable(subject.label)));
  }

  bool Agrees(const Subject& subject, bool stdin_is_used) {
    // The document may come from stdin; a person at the terminal can be asked nevertheless.
    std::ifstream terminal;
    if (stdin_is_used && ::isatty(STDERR_FILENO) == 1) terminal.open("/dev/tty");
    if (!terminal.is_open() && (stdin_is_used || ::isatty(STDIN_FILENO) != 1)) {
      code_ = Usage("nothing was changed, because nobody can be asked here",
                    "--yes changes it without a question; --dry-run only shows the change");
      return false;
    }
    console_.err << fmt::format("change {}? [y/N] ", rule::Printable(subject.label)) << std::flush;
    std::string line;
    std::istream& answers = terminal.is_open() ? static_cast<std::istream&>(terminal) : std::cin;
    if (std::getline(answers, line) && (line == "y" || line == "Y" || line == "yes")) return true;
    console_.err << "nothing was changed\n";
    code_ = kExitOk;
    return false;
  }

  const RulesArguments& arguments_;
  const client::http::ServerAccess server_;
  const base::Duration timeout_;
  const Console& console_;
  int code_ = kExitOk;
};

// A subcommand and its flags, besides the common ones for reaching a server.
struct Verb {
  std::string_view name;
  std::vector<std::string_view> flags;
};
const std::vector<Verb> kVerbs = {
    {"list", {"--json"}},
    {"get", {"--key"}},
    {"put", {"--key", "--dry-run", "--yes", "--json"}},
    {"delete", {"--key", "--dry-run", "--yes", "--json"}},
    {"history", {"--key", "--json"}},
    {"rollback", {"--key", "--dry-run", "--yes", "--json"}},
    {"rollout", {"--percent", "--shadow", "--promote", "--stop", "--dry-run", "--yes", "--json"}},
    {"confirm", {"--json"}},
};

bool Has(const Verb& verb, std::string_view flag) {
  return std::find(verb.flags.begin(), verb.flags.end(), flag) != verb.flags.end();
}

// Whether the verb has all flags that are given. If not, an error is on the console: if it were
// ignored, the command would change more than the user wants, or something else.
bool TakesFlags(const Verb& verb, const RulesArguments& arguments, const Console& console) {
  const std::pair<std::string_view, bool> given[] = {{"--key", arguments.key.has_value()},
                                                     {"--percent", arguments.percent.has_value()},
                                                     {"--shadow", arguments.shadow},
                                                     {"--promote", arguments.promote},
                                                     {"--stop", arguments.stop},
                                                     {"--dry-run", arguments.dry_run},
                                                     {"--yes", arguments.yes},
                                                     {"--json", arguments.as_json}};
  for (const auto& [flag, is_given] : given) {
    if (!is_given || Has(verb, flag)) continue;
    std::string others;
    for (const Verb& other : kVerbs)
      if (Has(other, flag)) others.append(others.empty() ? "" : ", ").append(other.name);
    console.Error(fmt::format("`headgate rules {}` has no {}", verb.name, flag),
                  fmt::format("{} is a flag of {}", flag, others));
    return false;
  }
  return true;
}

}  // namespace

int Rules(const std::vector<std::string>& arguments, const Console& console) {
  RulesArguments parsed;
  std::vector<std::string> words;
  ArgumentSpec spec{.command = "rules",
                    .flags = {{"--key", &parsed.key},
                              {"--percent", &parsed.percent},
                              {"--shadow", &parsed.shadow},
                              {"--promote", &parsed.promote},
                              {"--stop", &parsed.stop},
                              {"--dry-run", &parsed.dry_run},
                              {"--yes", &parsed.yes},
                              {"--timeout", &parsed.timeout},
                              {"--json", &parsed.as_json}},
                    .others = &words};
  parsed.server.AddTo(spec.flags);
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  if (!parsed.server.server) parsed.server.server = std::string(kAdminAddress);
  const auto verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& one) {
    return !words.empty() && one.name == words[0];
  });
  if (verb == kVerbs.end()) {
    console.Error(
        words.empty() ? std::string("`headgate rules` needs to know what to do")
                      : fmt::format("`headgate rules` cannot '{}'", rule::Printable(words[0])),
        "list, get, put, delete, rollout, history, rollback or confirm; `headgate help rules`");
    return kExitUsage;
  }
  parsed.verb = words[0];
  parsed.words.assign(words.begin() + 1, words.end());
  if (!TakesFlags(*verb, parsed, console)) return kExitUsage;
  const auto timeout = ParseTimeout(parsed.timeout, "--timeout 10s", console);
  if (!timeout) return kExitUsage;
  auto access = parsed.server.Resolve(console);
  if (!access) return kExitUsage;
  return RulesCommand(parsed, *std::move(access), *timeout, console).Run();
}

}  // namespace headgate::app
