// Any bytes are either loaded completely or refused with at least one problem that has a position.
#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/rule/explain.h"
#include "headgate/rule/read/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::rule;
  using namespace headgate::rule::read;
  const std::vector<RuleFile> files{
      {.name = "f.yaml",
       .text = std::string(static_cast<const char*>(static_cast<const void*>(data)), size)}};
  const LoadResult result = LoadRules(files, {.one_liners = {"k=v: 1/day"}});
  HEADGATE_CHECK(result.ok() == result.problems.empty());
  for (const Problem& problem : result.problems) {
    HEADGATE_CHECK(problem.line >= 1 && problem.column >= 1 && !problem.message.empty());
  }
  (void)Describe(result.problems);
  (void)Describe(result.warnings);
  if (!result.ok()) return 0;

  for (const Rule& rule : result.rules->rules()) {
    HEADGATE_CHECK(&rule == &result.rules->rules()[rule.index]);
    HEADGATE_CHECK(rule.unlimited == (rule.limits.empty() && !rule.concurrency));
    HEADGATE_CHECK(!rule.label().empty() && !rule.domain.empty());
    for (const std::vector<Entry>& entries :
         {std::vector<Entry>{{"k", "v"}},
          std::vector<Entry>{{"key", ""}, {"a", "b_c"}, {"a_b", "c"}}}) {
      Match match;
      HEADGATE_CHECK(result.rules->Find(rule.domain, entries, match));
      HEADGATE_CHECK(Explain(*result.rules, rule.domain, entries).rule == match.rule);
    }
  }
  return 0;
}
