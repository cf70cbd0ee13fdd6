// Every accepted limit of a key is one rule that this key matches; everything else has a problem
// with a place in the text.
#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/rule/read/key_limit.h"
#include "headgate/rule/read/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::rule;
  using namespace headgate::rule::read;
  const std::string text(static_cast<const char*>(static_cast<const void*>(data)), size);
  const LoadResult result = LoadRules(std::vector<RuleFile>{{"limit", text, "key"}});
  HEADGATE_CHECK(result.ok() == result.problems.empty());
  if (!result.ok()) {
    HEADGATE_CHECK(result.problems[0].line >= 1 && result.problems[0].column >= 1);
    HEADGATE_CHECK(!Describe(result.problems).empty());
    return 0;
  }
  Match match;
  const Entry entry{.key = kKeyLimitKey, .value = "key"};
  HEADGATE_CHECK(result.rules->Find(kKeyLimitDomain, {&entry, 1}, match));
  HEADGATE_CHECK(match.rule != nullptr);
  HEADGATE_CHECK(match.rule->unlimited == (match.rule->limits.empty() && !match.rule->concurrency));
  return 0;
}
