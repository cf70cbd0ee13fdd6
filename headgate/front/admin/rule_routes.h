// The routes that change one rule of a rule file; everything else in the file stays as it is
// written:
//
//   GET, PUT, DELETE /v1/rules/DOMAIN/KEY=VALUE/KEY=VALUE…
//   PUT, DELETE      /v1/rollouts/DOMAIN/KEY=VALUE…   begins, changes or ends its roll-out
//   POST             /v1/promote/DOMAIN/KEY=VALUE…    the roll-out's limits become the rule's
//
// Each part of the path is percent-encoded. KEY alone names the rule for any value of the key.
// Conditions, dry runs and answers are those of document_routes.h; the ETag is the version of the
// document that holds the rule.
#pragma once

#include <optional>
#include <string_view>

#include "headgate/http/routing/router.h"
#include "headgate/rule/editor.h"

namespace headgate::front::admin {

// Adds the routes. `editor` calls back on the router's thread, and must outlive the router.
void AddRuleRoutes(rule::Editor& editor, http::routing::Router& router);

// The rule that the part of a path behind its prefix names; nothing if it names none.
std::optional<rule::RulePath> RulePathIn(std::string_view path);

}  // namespace headgate::front::admin
