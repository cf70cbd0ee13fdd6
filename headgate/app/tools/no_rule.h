// Hints for a request to which no rule applies: it passes, which is seldom intended.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/client/http/ask.h"

namespace headgate::app {

// The rules that the user of a command may see.
struct KnownRules {
  std::map<std::string, std::vector<std::string>> paths_by_domain;
  bool all = true;  // there are no others
};

// The hint if no rule applied in this domain. `explain` is a command that shows why, for a shell;
// it may be empty.
std::string HintWithoutRule(const std::string& domain, const KnownRules& known,
                            std::string_view explain = {});

// The rules of a server, at least its first ones. None if it does not let us list them.
KnownRules RulesOfServer(const client::http::ServerAccess& server, base::Duration timeout);

// The words as a command for a POSIX shell.
std::string ShellCommand(std::span<const std::string> words);

}  // namespace headgate::app
