#include "headgate/rule/read/concurrency_reader.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "headgate/permit/permit.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/duration.h"

namespace headgate::rule::read {
namespace {

constexpr std::string_view kConcurrencyFieldsForm =
    "rate_limit: {algorithm: concurrency, requests: 20, ttl: 30s}";

// The words that only other kinds of limits may have.
constexpr Word kOtherWords[] = {
    Word::kAlign,       Word::kBlock, Word::kBurst,           Word::kCost,     Word::kCount,
    Word::kCountDenied, Word::kMax,   Word::kMaxDelay,        Word::kOverdraw, Word::kPeriod,
    Word::kPlans,       Word::kQueue, Word::kRequestsPerUnit, Word::kSharing,  Word::kStrict,
    Word::kTimezone,    Word::kUnit};

std::string HintFor(Word word) {
  switch (word) {
    case Word::kRequestsPerUnit:
      return "write requests: the most that may be in flight";
    case Word::kPeriod:
    case Word::kUnit:
      return "write ttl: the time after which a request that never ends does not count any more";
    case Word::kSharing:
    case Word::kStrict:
      return "permits are always asked for one by one; leave it out";
    default:
      return fmt::format("leave it out, as in {}", kConcurrencyFieldsForm);
  }
}

}  // namespace

bool SaysConcurrency(const Fields& fields) {
  const DocumentNode* const node = fields.value(Word::kAlgorithm);
  return node != nullptr && node->kind == NodeKind::kScalar && node->text == kConcurrency;
}

void ReadConcurrency(FieldReader& reader, Fields& fields, Rule& rule) {
  for (const Word word : kOtherWords) {
    if (!fields.has(word)) continue;
    reader.Report(fields, word, fmt::format("{} does not apply to concurrency", TextOf(word)),
                  HintFor(word));
  }
  for (const Word word : {Word::kRequests, Word::kTtl}) {
    if (fields.has(word) || fields.reported(word)) continue;
    reader.Report(fields, word, fmt::format("concurrency needs {}", TextOf(word)),
                  std::string(kConcurrencyFieldsForm));
  }
  const uint32_t max = reader.Unsigned32(fields, Word::kRequests);
  const std::string_view ttl_text = reader.Text(fields, Word::kTtl);
  if (fields.any_reported()) return;
  const auto ttl = ParseDuration(ttl_text);
  if (!ttl.ok()) {
    return reader.Report(fields, Word::kTtl,
                         fmt::format("invalid ttl: {}", std::string(ttl.status().message())),
                         "a duration is a number with a unit, such as 500ms, 20s or 1h30m");
  }
  const ConcurrencyLimit limit{.max = max, .ttl = *ttl};
  if (auto problem = ProblemWith(limit)) {
    const bool of_max = limit.max > permit::kPermitsPerKeyMax;
    return reader.Report(fields, of_max ? Word::kRequests : Word::kTtl, *std::move(problem),
                         std::string(kConcurrencyFieldsForm));
  }
  if (rule.concurrency) {
    return reader.Report(fields, Word::kAlgorithm, "a second limit of concurrency",
                         "a rule may have one, beside limits of other algorithms");
  }
  rule.concurrency = limit;
}

void RefuseConcurrencyWords(FieldReader& reader, Fields& fields) {
  if (fields.has(Word::kRequests)) {
    reader.Report(fields, Word::kRequests, "requests belongs to algorithm: concurrency",
                  "did you mean 'requests_per_unit'?");
  }
  if (fields.has(Word::kTtl)) {
    reader.Report(fields, Word::kTtl, "ttl belongs to algorithm: concurrency",
                  "the time of other limits is their unit or period");
  }
}

}  // namespace headgate::rule::read
