#include "headgate/app/tools/no_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/app/settings/server_flags.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {

namespace {

constexpr size_t kNamesShown = 8;

std::string ShowNames(const std::vector<std::string>& names) {
  std::string shown;
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i)
    shown += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamesShown) shown += fmt::format(" and {} more", names.size() - kNamesShown);
  return shown;
}

bool NeedsQuotes(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  return word.empty() || word.find_first_not_of(kPlain) != word.npos;
}

}  // namespace

std::string HintWithoutRule(const std::string& domain, const KnownRules& known,
                            std::string_view explain) {
  const auto found = known.paths_by_domain.find(domain);
  if (found != known.paths_by_domain.end()) {
    std::vector<std::string> paths;
    for (const std::string& path : found->second) paths.push_back(rule::Printable(path));
    std::string hint = fmt::format("no rule of the domain {} applies; it has rules for: {}",
                                   rule::Quote(domain), ShowNames(paths));
    if (!explain.empty()) hint += fmt::format("; `{}` shows each step", explain);
    return hint;
  }
  if (known.paths_by_domain.empty() || !known.all) {
    return fmt::format("no rule of the domain {} applies; to see which rules the server has, {}",
                       rule::Quote(domain), kLoginHint);
  }
  std::vector<std::string> names;
  for (const auto& [name, paths] : known.paths_by_domain) names.push_back(rule::Quote(name));
  return fmt::format("the domain {} has no rules; choose one that has, with --domain: {}",
                     rule::Quote(domain), ShowNames(names));
}

KnownRules RulesOfServer(const client::http::ServerAccess& server, base::Duration timeout) {
  KnownRules known;
  const auto reply = client::http::GetFrom(server, "/v1/rules", timeout);
  if (!reply.ok() || reply->status != 200) return known;
  const wire::Json page = wire::Json::Parse(reply->body).value_or(nullptr);
  for (const wire::Json& rule : page["rules"].items()) {
    if (rule["domain"].is_string() && rule["path"].is_string())
      known.paths_by_domain[std::string(rule["domain"].text())].emplace_back(rule["path"].text());
  }
  known.all = page["next"].is_null();
  return known;
}

std::string ShellCommand(std::span<const std::string> words) {
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!NeedsQuotes(word)) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) c == '\'' ? command += R"('\'')" : command += c;
    command += '\'';
  }
  return command;
}

}  // namespace headgate::app
