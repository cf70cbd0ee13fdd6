#include "headgate/app/tools/no_rule.h"

#include <fmt/format.h>

#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::app {

std::string HintWithoutRule(const std::string& domain, const std::set<std::string>& domains) {
  if (domains.empty() || domains.contains(domain)) {
    return fmt::format("`headgate explain {} k=v` shows why no rule applies", domain);
  }
  std::string names;
  for (const std::string& name : domains) names += (names.empty() ? "" : ", ") + rule::Quote(name);
  return fmt::format("the domain {} has no rules; choose one that has, with --domain: {}",
                     rule::Quote(domain), names);
}

std::set<std::string> DomainsOfServer(const http::ServerAccess& server, base::Duration timeout) {
  std::set<std::string> domains;
  const auto reply = http::GetFrom(server, "/v1/rules", timeout);
  if (!reply.ok() || reply->status != 200) return domains;
  const wire::Json page = wire::Json::Parse(reply->body).value_or(nullptr);
  for (const wire::Json& rule : page["rules"].items()) {
    if (rule["domain"].is_string()) domains.emplace(rule["domain"].text());
  }
  return domains;
}

}  // namespace headgate::app
