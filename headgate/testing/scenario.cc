#include "headgate/testing/scenario.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "headgate/testing/limit_words.h"

namespace headgate::testing {
namespace {

constexpr std::string_view kRuleForm = "rule NAME = N per DURATION … [and N per DURATION …]";
constexpr std::string_view kAskForm =
    "at TIME NAME:KEY [xN] [cost C] allow|deny [remaining N] [retry DURATION|never] [reset "
    "DURATION] [wait DURATION]";
constexpr std::string_view kRefundForm = "at TIME NAME:KEY refund C";

// Larger costs do not fit into the signed numbers of some protocols.
constexpr algorithm::Cost kCostMax = algorithm::Cost{1} << 62;

algorithm::Cost TakeCost(LineReader& line, std::string_view form) {
  const Word word = line.next();
  const algorithm::Cost cost = line.TakeNumber("a whole number for the cost", form);
  if (cost > kCostMax) line.Fail(word, fmt::format("a cost is at most {}", kCostMax), form);
  return cost;
}

// Sets a figure that may appear only once on a line.
template <typename T>
void SetOnce(LineReader& line, const Word& word, std::optional<T>& figure, T value) {
  if (figure) line.Fail(word, fmt::format("the line says \"{}\" twice", word.text), kAskForm);
  figure = value;
}

// [remaining N] [retry DURATION|never] [reset DURATION] [wait DURATION], in any order, to the end
// of the line.
void TakeFigures(LineReader& line, Expectation& expected) {
  while (!line.done()) {
    const Word word = line.Take();
    if (word.text == "remaining") {
      SetOnce(line, word, expected.remaining,
              line.TakeNumber("a whole number of requests remaining", kAskForm));
    } else if (word.text == "retry") {
      SetOnce(line, word, expected.retry_after,
              line.TakeIf("never") ? algorithm::kNever : line.TakeDuration("when to retry"));
    } else if (word.text == "reset") {
      SetOnce(line, word, expected.reset_after, line.TakeDuration("when the bucket is full again"));
    } else if (word.text == "wait") {
      SetOnce(line, word, expected.wait, line.TakeDuration("how long to wait"));
    } else {
      line.FailMissing(word, "remaining, retry, reset or wait", kAskForm);
    }
  }
}

// [xN] [cost C] allow|deny …
void TakeRequest(LineReader& line, Ask& ask) {
  bool repeated = false;
  bool priced = false;
  while (!line.done()) {
    const Word word = line.Take();
    if (word.text == "allow" || word.text == "deny") {
      ask.expected.allowed = word.text == "allow";
      return TakeFigures(line, ask.expected);
    }
    if (word.text == "cost" && !priced) {
      priced = true;
      ask.cost = TakeCost(line, kAskForm);
      continue;
    }
    const auto count = word.text.starts_with('x') ? WholeNumber(word.text.substr(1)) : std::nullopt;
    if (!count || repeated)
      return line.FailMissing(word, "allow or deny, after any xN and cost", kAskForm);
    if (*count == 0 || *count > kScenarioRepeatMax) {
      return line.Fail(word,
                       fmt::format("a line repeats its request 1 to {} times", kScenarioRepeatMax),
                       kAskForm);
    }
    repeated = true;
    ask.repeat = *count;
  }
  line.FailMissing(line.next(), "allow or deny", kAskForm);
}

class Parser {
 public:
  explicit Parser(std::string_view path) { parsed_.scenario.path = path; }

  ParsedScenario Parse(std::string_view text) {
    if (text.size() > kScenarioBytesMax) {
      Note({.message = fmt::format("a scenario has at most {} bytes", kScenarioBytesMax),
            .hint = "split it into several files"});
      return std::move(parsed_);
    }
    for (uint32_t number = 1; !text.empty() && parsed_.problems.size() < kScenarioProblemsMax;
         ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      LineReader line(number, text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ParseLine(line, number);
      if (line.failed()) Note(*line.problem());
    }
    return std::move(parsed_);
  }

 private:
  void Note(ScenarioProblem problem) { parsed_.problems.push_back(std::move(problem)); }

  void ParseLine(LineReader& line, uint32_t number) {
    if (line.done()) return;
    const Word first = line.Take();
    if (first.text == "rule") {
      ParseRule(line);
    } else if (first.text == "at") {
      ParseStep(line, number);
    } else {
      line.FailMissing(first, "\"rule\" or \"at\"", "a comment begins with #");
    }
  }

  void ParseRule(LineReader& line) {
    const Word name = line.next();
    const bool known = rules_.contains(name.text);
    ScenarioRule rule = TakeRule(line);
    if (line.failed()) return;
    if (known) {
      return line.Fail(name, fmt::format("there is a rule \"{}\" already", name.text),
                       fmt::format("to change it on the way: at TIME rule {} = …", name.text));
    }
    parsed_.scenario.rules.push_back(std::move(rule));
  }

  void ParseStep(LineReader& line, uint32_t number) {
    Step step{.line = number,
              .at = base::Instant::FromNanos(line.TakeDuration("a time").count()),
              .action = {}};
    if (line.TakeIf("rule")) {
      const Word name = line.next();
      const bool known = rules_.contains(name.text);
      step.action = TakeRule(line);
      if (!known) FailUnknown(line, name, name.text);
    } else {
      step.action = TakeAsk(line);
    }
    if (!line.failed()) parsed_.scenario.steps.push_back(std::move(step));
  }

  // Reads NAME = N per DURATION …
  ScenarioRule TakeRule(LineReader& line) {
    const Word name = line.Take();
    if (name.text.empty() || name.text.find_first_of(":=") != std::string_view::npos) {
      line.FailMissing(name, "a rule's name, without : and = in it", kRuleForm);
      return {};
    }
    // Register the name even if the limit turns out to be wrong, so that one mistake is reported
    // once.
    rules_.emplace(name.text);
    if (const Word equals = line.Take(); equals.text != "=")
      line.FailMissing(equals, "\"=\"", kRuleForm);
    return {.name = std::string(name.text), .limits = TakeLimits(line)};
  }

  // Reads NAME:KEY and the operation on it.
  Ask TakeAsk(LineReader& line) {
    const Word bucket = line.Take();
    const size_t colon = bucket.text.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == bucket.text.size()) {
      line.FailMissing(bucket, "\"rule\" or NAME:KEY", kAskForm);
      return {};
    }
    Ask ask{.rule = std::string(bucket.text.substr(0, colon)),
            .key = std::string(bucket.text.substr(colon + 1))};
    if (!rules_.contains(ask.rule)) FailUnknown(line, bucket, ask.rule);
    if (line.TakeIf("refund")) {
      ask.operation = Ask::Operation::kRefund;
      ask.cost = TakeCost(line, kRefundForm);
    } else if (line.TakeIf("reset")) {
      ask.operation = Ask::Operation::kReset;
    } else {
      TakeRequest(line, ask);
    }
    if (!line.done()) line.FailMissing(line.next(), "the end of the line", kAskForm);
    requests_ += ask.repeat;
    if (requests_ > kScenarioRequestsMax) {
      line.Fail(bucket,
                fmt::format("a scenario makes at most {} requests in all", kScenarioRequestsMax),
                "repeat less, or split it into several files");
    }
    return ask;
  }

  static void FailUnknown(LineReader& line, const Word& at, std::string_view name) {
    line.Fail(at, fmt::format("no line above says what rule \"{}\" is", name),
              fmt::format("rule {} = N per DURATION", name));
  }

  ParsedScenario parsed_;
  std::set<std::string, std::less<>> rules_;
  uint64_t requests_ = 0;
};

}  // namespace

ParsedScenario ParseScenario(std::string_view path, std::string_view text) {
  return Parser(path).Parse(text);
}

std::string PlaceAndMessage(std::string_view path, const ScenarioProblem& problem) {
  return fmt::format("{}:{}:{}: {}", path, problem.line, problem.column, problem.message);
}

std::string Describe(std::string_view path, const ScenarioProblem& problem) {
  return fmt::format("{}\n  hint: {}", PlaceAndMessage(path, problem), problem.hint);
}

}  // namespace headgate::testing
