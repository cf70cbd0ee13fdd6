// Every accepted one-liner is a rule that its own keys and values match.
#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/read/one_liner.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::rule;
  using namespace headgate::rule::read;
  const std::string text(static_cast<const char*>(static_cast<const void*>(data)), size);
  const ParsedOneLiner parsed = ParseOneLiner(text);
  const LoadResult result = LoadRules({}, {.one_liners = {text}});
  HEADGATE_CHECK(result.ok() == !parsed.error.has_value());
  if (parsed.error) {
    HEADGATE_CHECK(parsed.error->column >= 1 && parsed.error->column <= text.size() + 1);
    HEADGATE_CHECK(!parsed.error->message.empty() && !parsed.error->hint.empty());
    (void)Describe(result.problems);
    return 0;
  }
  std::vector<Entry> entries;
  for (const auto& [key, value] : parsed.rule.steps)
    entries.push_back({.key = key, .value = value});
  Match match;
  HEADGATE_CHECK(result.rules->Find(kOneLinerDomain, entries, match));
  HEADGATE_CHECK(match.rule != nullptr);
  HEADGATE_CHECK(match.rule->concurrency == parsed.rule.concurrency);
  if (parsed.rule.concurrency) return 0;
  HEADGATE_CHECK(match.rule->limits.size() == 1);
  HEADGATE_CHECK(match.rule->limits[0].limit.spec() == parsed.rule.limit.limit.spec());
  return 0;
}
