// What to say if no rule applies to a request: it passes, which is seldom what was meant.
#pragma once

#include <set>
#include <string>

#include "headgate/base/time.h"
#include "headgate/http/client.h"

namespace headgate::app {

// The hint if no rule applied in this domain. `domains` are those known to have rules.
std::string HintWithoutRule(const std::string& domain, const std::set<std::string>& domains);

// The domains that have rules; empty if the server does not allow us to list its rules.
std::set<std::string> DomainsOfServer(const http::ServerAccess& server, base::Duration timeout);

}  // namespace headgate::app
