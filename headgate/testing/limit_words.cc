#include "headgate/testing/limit_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "headgate/rule/block_words.h"
#include "headgate/rule/read/limit_words.h"
#include "headgate/rule/rule_set.h"

namespace headgate::testing {
namespace {

using algorithm::Align;

constexpr std::string_view kForm =
    "rule NAME = N per DURATION [algorithm A] [burst B] [align first_hit] [timezone ZONE] [queue] "
    "[count_denied] "
    "[overdraw] [block DURATION,…] "
    "[and …]";

void TakePeriod(LineReader& line, rule::read::Period& period) {
  if (const Word per = line.Take(); per.text != "per")
    return line.FailMissing(per, "\"per\"", kForm);
  const Word word = line.Take();
  const auto parsed = rule::read::ParsePeriod(word.text);
  if (word.text.empty()) return line.FailMissing(word, "a period", kForm);
  if (!parsed.ok()) return line.Fail(word, std::string(parsed.status().message()), kForm);
  period = *parsed;
}

void TakeAlgorithm(LineReader& line, rule::read::LimitWords& words) {
  const Word name = line.Take();
  words.algorithm = algorithm::AlgorithmByName(name.text);
  if (!words.algorithm) {
    line.FailMissing(name, "an algorithm",
                     "token_bucket (or gcra), leaky_bucket, fixed_window, sliding_window_counter, "
                     "sliding_window_log");
  }
}

void TakeAlign(LineReader& line, rule::read::LimitWords& words) {
  const Word align = line.Take();
  if (align.text == "first_hit") {
    words.align = Align::kFirstHit;
  } else if (align.text == "epoch") {
    words.align = Align::kEpoch;
  } else {
    line.FailMissing(align, "first_hit or epoch",
                     "windows of the calendar are said as: per week, per month, per year");
  }
}

void TakeTimezone(LineReader& line, rule::read::LimitWords& words) {
  const Word name = line.Take();
  const auto zone = base::TimeZone::Load(name.text);
  if (!zone.ok()) return line.Fail(name, std::string(zone.status().message()), kForm);
  words.timezone = *zone;
}

void TakeBlock(LineReader& line, rule::read::LimitWords& words) {
  const Word word = line.Take();
  std::vector<std::string_view> lengths;
  for (size_t begin = 0; begin <= word.text.size();) {
    const size_t end = std::min(word.text.find(',', begin), word.text.size());
    lengths.push_back(word.text.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto block = rule::ParseBlock(lengths);
  if (!block.ok()) return line.Fail(word, std::string(block.status().message()), kForm);
  words.block = *block;
}

void TakeWord(LineReader& line, rule::read::LimitWords& words) {
  if (const auto requests = WholeNumber(line.next().text)) {
    line.Take();
    words.requests = *requests;
    TakePeriod(line, words.period);
  } else if (line.TakeIf("algorithm")) {
    TakeAlgorithm(line, words);
  } else if (line.TakeIf("burst")) {
    words.burst = line.TakeNumber("a whole number for the burst", kForm);
  } else if (line.TakeIf("align")) {
    TakeAlign(line, words);
  } else if (line.TakeIf("timezone")) {
    TakeTimezone(line, words);
  } else if (line.TakeIf("queue")) {
    words.queue = true;
  } else if (line.TakeIf("count_denied")) {
    words.count_denied = true;
  } else if (line.TakeIf("overdraw")) {
    words.overdraw = true;
  } else if (line.TakeIf("block")) {
    TakeBlock(line, words);
  } else {
    line.FailMissing(line.next(), "a word of a rule", kForm);
  }
}

// Reads one limit, up to the end of the line or the next "and".
algorithm::Limit TakeLimit(LineReader& line) {
  const Word begin = line.next();
  rule::read::LimitWords words;
  bool rate = false;
  std::vector<std::string_view> seen;
  while (!line.done() && line.next().text != "and") {
    const Word word = line.next();
    const bool is_rate = WholeNumber(word.text).has_value();
    const std::string_view name = is_rate ? "per" : word.text;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
      line.Fail(word, fmt::format("the rule says \"{}\" twice", name), kForm);
      break;
    }
    seen.push_back(name);
    rate = rate || is_rate;
    TakeWord(line, words);
  }
  if (!rate) line.FailMissing(line.next(), "how many requests per which period", kForm);
  if (line.failed()) return {};

  const auto made = rule::read::MakeLimit(words);
  if (!made.ok()) {
    line.Fail(begin, std::string(made.status().message()), kForm);
    return {};
  }
  return made->limit;
}

}  // namespace

std::vector<algorithm::Limit> TakeLimits(LineReader& line) {
  std::vector<algorithm::Limit> limits;
  do {
    if (limits.size() == rule::kLimitsPerRuleMax) {
      line.Fail(line.next(), fmt::format("a rule has at most {} limits", rule::kLimitsPerRuleMax),
                kForm);
      break;
    }
    limits.push_back(TakeLimit(line));
  } while (!line.failed() && line.TakeIf("and"));
  return limits;
}

}  // namespace headgate::testing
