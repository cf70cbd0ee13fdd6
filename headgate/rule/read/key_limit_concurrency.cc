#include "headgate/rule/read/key_limit_concurrency.h"

#include <fmt/format.h>

#include <string>

#include "headgate/permit/permit.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/duration.h"

namespace headgate::rule::read {
namespace {

constexpr std::string_view kKeyConcurrencyForm =
    R"({"Limit": 20, "Algorithm": "concurrency", "Ttl": "60s"})";

// The words that only other kinds of limits may have.
constexpr KeyWord kOtherKeyWords[] = {
    KeyWord::kAlign,    KeyWord::kBlock,        KeyWord::kBurst, KeyWord::kCountDenied,
    KeyWord::kMaxDelay, KeyWord::kOverdraw,     KeyWord::kQueue, KeyWord::kTimezone,
    KeyWord::kWindow,   KeyWord::kWindowSeconds};

std::string HintFor(KeyWord word) {
  if (word == KeyWord::kWindow || word == KeyWord::kWindowSeconds)
    return "write Ttl: the time after which a request that never ends does not count any more";
  return fmt::format("leave it out, as in {}", kKeyConcurrencyForm);
}

}  // namespace

bool SaysConcurrency(const KeyLimitMembers& members) {
  const DocumentNode* const node = members.value(KeyWord::kAlgorithm);
  return node != nullptr && node->kind == NodeKind::kScalar && node->tag == Tag::kString &&
         node->text == kConcurrency;
}

void ReadConcurrency(KeyLimitMembers& members, Rule& rule) {
  for (const KeyWord word : kOtherKeyWords) {
    if (!members.has(word)) continue;
    members.Report(word, fmt::format("{} does not apply to concurrency", TextOf(word)),
                   HintFor(word));
  }
  for (const KeyWord word : {KeyWord::kLimit, KeyWord::kTtl}) {
    if (members.has(word)) continue;
    members.Report(word, fmt::format("concurrency needs {}", TextOf(word)),
                   std::string(kKeyConcurrencyForm));
  }
  const uint64_t max = members.WholeNumber(KeyWord::kLimit).value_or(0);
  const std::string_view ttl_text = members.Text(KeyWord::kTtl);
  if (!members.good()) return;
  const auto ttl = ParseDuration(ttl_text);
  if (!ttl.ok()) {
    return members.Report(KeyWord::kTtl,
                          fmt::format("invalid Ttl: {}", std::string(ttl.status().message())),
                          R"(write a duration: "Ttl": "60s")");
  }
  if (max > permit::kPermitsPerKeyMax)
    return members.Report(KeyWord::kLimit, TooManyInFlight(max), std::string(kKeyConcurrencyForm));
  const ConcurrencyLimit limit{.max = static_cast<uint32_t>(max), .ttl = *ttl};
  if (auto problem = ProblemWith(limit))
    return members.Report(KeyWord::kTtl, *std::move(problem), std::string(kKeyConcurrencyForm));
  if (rule.concurrency) {
    return members.Report(KeyWord::kAlgorithm, "a second limit of concurrency",
                          "a rule may have one, beside limits of other algorithms");
  }
  rule.concurrency = limit;
}

void RefuseConcurrencyWords(KeyLimitMembers& members) {
  if (!members.has(KeyWord::kTtl)) return;
  members.Report(KeyWord::kTtl, "Ttl belongs to Algorithm: concurrency",
                 "the time of other limits is their Window");
}

}  // namespace headgate::rule::read
