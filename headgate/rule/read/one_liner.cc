#include "headgate/rule/read/one_liner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "headgate/rule/concurrency.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/file_loader.h"
#include "headgate/rule/read/limit_words.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule::read {
namespace {

using algorithm::Algorithm;

constexpr std::string_view kConcurrencyForm =
    "write it as REQUESTS concurrency ttl DURATION, such as 'api_key: 20 concurrency ttl 30s'";

constexpr std::string_view kOneLinerForm =
    "write it as key[=value][,key[=value]…]: REQUESTS/PERIOD [burst B] [ALGORITHM] [first_hit] "
    "[queue], such as "
    "'api_key: 100/minute burst 20'";

class OneLinerParser {
 public:
  explicit OneLinerParser(std::string_view text) : text_(text) {}

  ParsedOneLiner Run() {
    if (text_.size() > kOneLinerBytesMax) {
      Fail(0, fmt::format("longer than {} bytes", kOneLinerBytesMax), "use a rule file");
    } else {
      TakeSteps();
      if (!error_) TakeWords();
      if (!error_) MakeRule();
    }
    return {.rule = std::move(rule_), .error = std::move(error_)};
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char next() const { return done() ? '\0' : text_[at_]; }
  static bool IsSpace(char c) { return c == ' ' || c == '\t'; }
  void SkipSpace() {
    while (IsSpace(next())) ++at_;
  }
  void Fail(size_t at, std::string message, std::string_view hint) {
    if (!error_)
      error_ =
          OneLinerError{.column = at + 1, .message = std::move(message), .hint = std::string(hint)};
  }

  // Reads key[=value] pairs up to and including the colon.
  void TakeSteps() {
    while (!error_) {
      SkipSpace();
      const size_t begin = at_;
      OneLiner::Step step{.key = TakeText("=,:"), .value = {}};
      if (!error_ && step.key.empty()) Fail(begin, "a key is missing", kOneLinerForm);
      SkipSpace();
      if (next() == '=') {
        ++at_;
        SkipSpace();
        const size_t value_begin = at_;
        step.value = TakeText(",:");
        if (!error_ && step.value.empty()) {
          Fail(value_begin, fmt::format("the value of {} is empty", Quote(step.key)),
               "leave out the '=' for a rule that matches every value");
        }
      }
      if (step.key.size() > kTextBytesMax || step.value.size() > kTextBytesMax) {
        Fail(begin, fmt::format("a key or value is longer than {} bytes", kTextBytesMax),
             "use a shorter one");
      }
      rule_.steps.push_back(std::move(step));
      SkipSpace();
      if (error_) return;
      const char end = next();
      if (end == ':') {
        ++at_;
        break;
      }
      if (end != ',') return FailAfterText();
      ++at_;
    }
    if (rule_.steps.size() > kEntriesMax) {
      Fail(0, fmt::format("more than {} keys", kEntriesMax), "no request has that many entries");
    }
  }

  void FailAfterText() {
    if (text_.find(':', at_) == std::string_view::npos)
      return Fail(at_, "the ':' before the limit is missing", kOneLinerForm);
    Fail(at_, fmt::format("{} cannot follow here", Quote(text_.substr(at_, 1))),
         "put a key or value that contains one of ,:\" or a space in double quotes");
  }

  // Reads a quoted text, or a bare text that ends before one of `ends`, a space or a quote.
  std::string TakeText(std::string_view ends) {
    if (next() == '"') return TakeQuoted();
    const size_t begin = at_;
    while (!done() && !IsSpace(next()) && next() != '"' &&
           ends.find(next()) == std::string_view::npos)
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string TakeQuoted() {
    const size_t begin = at_++;
    std::string out;
    for (; !done(); ++at_) {
      char c = next();
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        ++at_;
        c = next();
        if (c != '"' && c != '\\') {
          Fail(at_ - 1, "a '\\' may only come before '\"' or '\\'", "write '\\\\' for a '\\'");
          return out;
        }
      }
      out += c;
    }
    Fail(begin, "the closing '\"' is missing", "end quoted text with '\"'");
    return out;
  }

  struct Said {
    std::string_view text;
    size_t at;
  };
  Said TakeWord() {
    SkipSpace();
    const size_t begin = at_;
    while (!done() && !IsSpace(next())) ++at_;
    return {.text = text_.substr(begin, at_ - begin), .at = begin};
  }

  void TakeWords() {
    bool rate = false;
    for (Said word = TakeWord(); !word.text.empty() && !error_; word = TakeWord()) {
      if (word.text.find('/') != std::string_view::npos) {
        if (rate)
          return Fail(word.at, "a second REQUESTS/PERIOD",
                      "give each limit a rule of its own, or use rate_limits in a file");
        rate = true;
        TakeRate(word);
      } else {
        TakePlainWord(word);
      }
    }
    if (error_) return;
    if (concurrency_at_) return TakeConcurrency(rate);
    if (in_flight_) return FailUnknown(*in_flight_);
    if (ttl_) return Fail(ttl_->at, "ttl is for concurrency", kConcurrencyForm);
    if (!rate) Fail(text_.size(), "REQUESTS/PERIOD is missing", kOneLinerForm);
  }

  // REQUESTS concurrency ttl DURATION.
  void TakeConcurrency(bool rate) {
    const LimitWords& words = rule_.words;
    if (rate || words.algorithm || words.burst || words.align || words.queue) {
      return Fail(*concurrency_at_, "concurrency goes with REQUESTS and ttl alone",
                  kConcurrencyForm);
    }
    if (!in_flight_ || !ttl_) {
      return Fail(*concurrency_at_,
                  in_flight_ ? "concurrency needs a ttl" : "concurrency needs a number of requests",
                  kConcurrencyForm);
    }
    const auto ttl = ParseDuration(ttl_->text);
    if (!ttl.ok()) return Fail(ttl_->at, std::string(ttl.status().message()), kConcurrencyForm);
    const uint64_t max = WholeNumber(in_flight_->text).value_or(UINT64_MAX);
    const ConcurrencyLimit limit{.max = static_cast<uint32_t>(std::min<uint64_t>(max, UINT32_MAX)),
                                 .ttl = *ttl};
    if (auto problem = ProblemWith(limit))
      return Fail(*concurrency_at_, *std::move(problem), kConcurrencyForm);
    rule_.concurrency = limit;
  }

  void TakeRate(Said word) {
    rate_at_ = word.at;
    const size_t slash = word.text.find('/');
    const auto requests = WholeNumber(word.text.substr(0, slash));
    if (!requests) {
      return Fail(word.at,
                  fmt::format("{} is not a number of requests", Quote(word.text.substr(0, slash))),
                  "a whole number, as in 100/minute");
    }
    rule_.words.requests = *requests;
    const std::string_view period_text = word.text.substr(slash + 1);
    const auto period = ParsePeriod(period_text, Letters::kAllowed);
    if (period.ok()) {
      rule_.words.period = *period;
      return;
    }
    std::string hint =
        DidYouMean(period_text, {"second", "minute", "hour", "day", "week", "month", "year"});
    if (hint.empty()) hint = "a period is a unit or a duration, as in 100/minute or 5/20s";
    Fail(word.at + slash + 1, std::string(period.status().message()), hint);
  }

  void TakePlainWord(Said word) {
    if (const auto named = algorithm::AlgorithmByName(word.text)) {
      if (rule_.words.algorithm) return Fail(word.at, "a second algorithm", "name one");
      rule_.words.algorithm = *named;
    } else if (word.text == "burst") {
      const Said number = TakeWord();
      if (rule_.words.burst) return Fail(word.at, "a second burst", "name one");
      rule_.words.burst = WholeNumber(number.text);
      if (!rule_.words.burst) {
        Fail(number.at, fmt::format("{} is not a burst", Quote(number.text)),
             "a whole number, as in burst 20");
      }
    } else if (word.text == kConcurrency) {
      if (concurrency_at_) return Fail(word.at, "a second algorithm", "name one");
      concurrency_at_ = word.at;
    } else if (word.text == "ttl") {
      if (ttl_) return Fail(word.at, "a second ttl", "name one");
      ttl_ = TakeWord();
    } else if (!in_flight_ && WholeNumber(word.text)) {
      in_flight_ = word;
    } else if (word.text == "first_hit") {
      rule_.words.align = algorithm::Align::kFirstHit;
    } else if (word.text == "queue") {
      rule_.words.queue = true;
    } else {
      FailUnknown(word);
    }
  }

  void FailUnknown(Said word) {
    std::string hint =
        DidYouMean(word.text, {"burst", "first_hit", "queue", "token_bucket", "gcra",
                               "leaky_bucket", "fixed_window", "sliding_window_counter",
                               "sliding_window_log", "concurrency", "ttl"});
    Fail(word.at, fmt::format("unknown word {}", Quote(word.text)),
         hint.empty() ? kOneLinerForm : hint);
  }

  // Only digits, below 2^63.
  static std::optional<uint64_t> WholeNumber(std::string_view text) {
    uint64_t number = 0;
    if (text.empty()) return std::nullopt;
    for (const char c : text) {
      if (c < '0' || c > '9' || number > (std::numeric_limits<int64_t>::max() - 9) / 10)
        return std::nullopt;
      number = number * 10 + static_cast<uint64_t>(c - '0');
    }
    return number;
  }

  void MakeRule() {
    if (rule_.concurrency) return;
    const auto limit = MakeLimit(rule_.words);
    if (!limit.ok()) return Fail(rate_at_, std::string(limit.status().message()), kOneLinerForm);
    rule_.limit = *limit;
  }

  const std::string_view text_;
  size_t at_ = 0;
  size_t rate_at_ = 0;
  std::optional<size_t> concurrency_at_;
  std::optional<Said> in_flight_;  // a number alone
  std::optional<Said> ttl_;
  OneLiner rule_;
  std::optional<OneLinerError> error_;
};

}  // namespace

ParsedOneLiner ParseOneLiner(std::string_view text) { return OneLinerParser(text).Run(); }

std::string OneLinerSource(std::string_view text) { return fmt::format("rule {}", Quote(text)); }

void AddOneLiner(std::string_view text, LoadState& state, std::vector<Problem>& problems,
                 std::vector<Problem>& warnings) {
  const std::string source = OneLinerSource(text);
  const auto place = [&](size_t column, std::string message, std::string hint) {
    return Problem{.file = source,
                   .line = 1,
                   .column = static_cast<uint32_t>(column),
                   .message = std::move(message),
                   .hint = std::move(hint)};
  };
  ParsedOneLiner parsed = ParseOneLiner(text);
  if (parsed.error) {
    problems.push_back(place(parsed.error->column, std::move(parsed.error->message),
                             std::move(parsed.error->hint)));
    return;
  }

  Rule rule;
  rule.domain = kOneLinerDomain;
  rule.identity = DomainIdentity(kOneLinerDomain);
  NodeId node = state.builder.Domain(kOneLinerDomain);
  for (const auto& [key, value] : parsed.rule.steps) {
    node = state.builder.AddChild(node, key, value).node;
    rule.identity = ChildIdentity(rule.identity, key, value);
    rule.path +=
        fmt::format("{}{}{}{}", rule.path.empty() ? "" : ".", key, value.empty() ? "" : "_", value);
  }
  if (state.builder.has_rule(node)) {
    problems.push_back(place(1,
                             fmt::format("duplicate descriptor composite key '{}.{}'",
                                         kOneLinerDomain, Shown(rule.path)),
                             "another rule has these keys; write several limits of one rule in a "
                             "file, under rate_limits"));
    return;
  }
  if (parsed.rule.concurrency) {
    rule.concurrency = parsed.rule.concurrency;
    state.builder.SetRule(node, std::move(rule));
    return;
  }
  const std::string_view length = LengthOfUnit(parsed.rule.words.period);
  if (!length.empty() && parsed.rule.limit.limit.algorithm() != Algorithm::kFixedWindow) {
    warnings.push_back(
        place(1, std::string(length), "with fixed_window it ends with the calendar's, in UTC"));
  }
  rule.limits.push_back(parsed.rule.limit);
  state.builder.SetRule(node, std::move(rule));
}

}  // namespace headgate::rule::read
