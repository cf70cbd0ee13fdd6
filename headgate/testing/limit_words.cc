#include "headgate/testing/limit_words.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace headgate::testing {
namespace {

using algorithm::Algorithm;
using algorithm::Align;
using algorithm::LimitSpec;

constexpr std::string_view kForm =
    "rule NAME = N per DURATION [algorithm A] [burst B] [align first_hit] [queue] [count_denied]";

// What the words say, before it is known whether they go together.
struct Said {
  LimitSpec spec;
  std::optional<Algorithm> algorithm;
  bool queue = false;
};

void TakePeriod(LineReader& line, LimitSpec& spec) {
  if (const Word per = line.Take(); per.text != "per") return line.FailMissing(per, "\"per\"", kForm);
  if (line.TakeIf("month")) {
    spec.align = Align::kCalendarMonth;
  } else if (line.TakeIf("year")) {
    spec.align = Align::kCalendarYear;
  } else {
    spec.period = line.TakeDuration("a period");
  }
}

void TakeAlgorithm(LineReader& line, Said& said) {
  const Word name = line.Take();
  said.algorithm = algorithm::AlgorithmByName(name.text);
  if (!said.algorithm) {
    line.FailMissing(name, "an algorithm",
                     "token_bucket (or gcra), leaky_bucket, fixed_window, sliding_window_counter, sliding_window_log");
  }
}

void TakeAlign(LineReader& line, LimitSpec& spec) {
  const Word align = line.Take();
  if (align.text == "first_hit") {
    spec.align = Align::kFirstHit;
  } else if (align.text != "epoch") {
    line.FailMissing(align, "first_hit or epoch", "windows of the calendar are said as: per month, per year");
  }
}

void TakeWord(LineReader& line, Said& said) {
  if (const auto requests = WholeNumber(line.next().text)) {
    line.Take();
    said.spec.requests = *requests;
    TakePeriod(line, said.spec);
  } else if (line.TakeIf("algorithm")) {
    TakeAlgorithm(line, said);
  } else if (line.TakeIf("burst")) {
    said.spec.burst = line.TakeNumber("a whole number for the burst", kForm);
  } else if (line.TakeIf("align")) {
    TakeAlign(line, said.spec);
  } else if (line.TakeIf("queue")) {
    said.queue = true;
  } else if (line.TakeIf("count_denied")) {
    said.spec.count_denied = true;
  } else {
    line.FailMissing(line.next(), "a word of a rule", kForm);
  }
}

// token_bucket where none is named; a queue is leaky_bucket's, and nothing else has one.
std::optional<Algorithm> AlgorithmOf(const Said& said) {
  if (!said.queue) return said.algorithm.value_or(Algorithm::kTokenBucket);
  const Algorithm named = said.algorithm.value_or(Algorithm::kLeakyBucket);
  if (named != Algorithm::kLeakyBucket && named != Algorithm::kLeakyBucketQueue) return std::nullopt;
  return Algorithm::kLeakyBucketQueue;
}

}  // namespace

algorithm::Limit TakeLimit(LineReader& line) {
  const Word begin = line.next();
  Said said;
  bool rate = false;
  std::vector<std::string_view> seen;
  while (!line.done()) {
    const Word word = line.next();
    const bool is_rate = WholeNumber(word.text).has_value();
    const std::string_view name = is_rate ? "per" : word.text;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      line.Fail(word, fmt::format("the rule says \"{}\" twice", name), kForm);
      break;
    }
    seen.push_back(name);
    rate = rate || is_rate;
    TakeWord(line, said);
  }
  if (!rate) line.FailMissing(line.next(), "how many requests per which period", kForm);
  if (line.failed()) return {};

  const auto algorithm = AlgorithmOf(said);
  if (!algorithm) {
    line.Fail(begin, fmt::format("{} has no queue", Name(*said.algorithm)), "algorithm leaky_bucket queue");
    return {};
  }
  said.spec.algorithm = *algorithm;
  auto limit = algorithm::Limit::Make(said.spec);
  if (!limit.ok()) {
    line.Fail(begin, std::string(limit.status().message()), kForm);
    return {};
  }
  return *limit;
}

}  // namespace headgate::testing
