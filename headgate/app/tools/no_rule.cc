#include "headgate/app/tools/no_rule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "headgate/rule/quote.h"

namespace headgate::app {

using nlohmann::json;

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
  const json page = json::parse(reply->body, nullptr, false);
  if (!page.is_object() || !page.contains("rules")) return domains;
  for (const json& rule : page.at("rules")) {
    if (rule.is_object() && rule.contains("domain") && rule.at("domain").is_string())
      domains.insert(rule.at("domain"));
  }
  return domains;
}

}  // namespace headgate::app
