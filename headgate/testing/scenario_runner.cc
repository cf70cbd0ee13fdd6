#include "headgate/testing/scenario_runner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "headgate/rule/duration.h"

namespace headgate::testing {
namespace {

using algorithm::Decision;
using base::Duration;

Duration RoundUp(Duration d, Duration precision) {
  if (d == algorithm::kNever) return d;
  const auto rest = d.count() % precision.count();
  return rest == 0 ? d : d + (precision - Duration(rest));
}

std::string Text(Duration d) { return d == algorithm::kNever ? "never" : rule::FormatDuration(d); }

// The expected values at the driver's time resolution.
Expectation Shown(Expectation expected, Duration precision) {
  for (auto* figure : {&expected.retry_after, &expected.reset_after, &expected.wait}) {
    if (*figure) **figure = RoundUp(**figure, precision);
  }
  return expected;
}

bool FiguresMatch(const Expectation& expected, const Decision& got) {
  return expected.remaining.value_or(got.remaining) == got.remaining &&
         expected.retry_after.value_or(got.retry_after) == got.retry_after &&
         expected.reset_after.value_or(got.reset_after) == got.reset_after &&
         expected.wait.value_or(got.wait) == got.wait;
}

// The verdict and the figures of `decision` that the line names. For an unexpected denial, also the
// retry time.
std::string Text(const Decision& decision, const Expectation& named) {
  std::string text = decision.allowed ? "allow" : "deny";
  auto out = std::back_inserter(text);
  if (named.remaining) fmt::format_to(out, " remaining {}", decision.remaining);
  if (named.retry_after || (!decision.allowed && named.allowed))
    fmt::format_to(out, " retry {}", Text(decision.retry_after));
  if (named.reset_after) fmt::format_to(out, " reset {}", Text(decision.reset_after));
  if (named.wait) fmt::format_to(out, " wait {}", Text(decision.wait));
  return text;
}

std::string Text(const Expectation& expected) {
  return Text(Decision{.allowed = expected.allowed,
                       .remaining = expected.remaining.value_or(0),
                       .retry_after = expected.retry_after.value_or(Duration(0)),
                       .reset_after = expected.reset_after.value_or(Duration(0)),
                       .wait = expected.wait.value_or(Duration(0))},
              expected);
}

class Run {
 public:
  Run(const Scenario& scenario, Driver& driver)
      : scenario_(scenario), driver_(driver), rules_(scenario.rules) {}

  std::vector<ScenarioDifference> Steps() {
    if (const absl::Status status = driver_.SetRules(rules_, base::Instant{0}); !status.ok()) {
      Differ(1, fmt::format("expected the rules to be taken up, got: {}",
                            std::string(status.message())));
      return std::move(differences_);
    }
    for (const Step& step : scenario_.steps) {
      if (const auto* rule = std::get_if<ScenarioRule>(&step.action)) {
        Change(step, *rule);
      } else {
        Question(step, std::get<Ask>(step.action));
      }
    }
    return std::move(differences_);
  }

 private:
  void Differ(uint32_t line, std::string message) {
    differences_.push_back({line, std::move(message)});
  }

  void Change(const Step& step, const ScenarioRule& rule) {
    std::find_if(rules_.begin(), rules_.end(), [&](const ScenarioRule& r) {
      return r.name == rule.name;
    })->limits = rule.limits;
    if (const absl::Status status = driver_.SetRules(rules_, step.at); !status.ok()) {
      Differ(step.line, fmt::format("expected the rule to be changed, got: {}",
                                    std::string(status.message())));
    }
  }

  void Question(const Step& step, const Ask& ask) {
    const Expectation expected = Shown(ask.expected, driver_.precision());
    // Send all requests even if one differs, so that later lines keep their meaning. Report the
    // first difference.
    std::string difference;
    for (uint64_t i = 1; i <= ask.repeat; ++i) {
      const auto got = driver_.Answer(ask, step.at);
      if (!difference.empty()) continue;
      const std::string which =
          ask.repeat > 1 ? fmt::format(" (request {} of {})", i, ask.repeat) : "";
      if (!got.ok()) {
        difference = fmt::format("expected an answer, got: {}{}",
                                 std::string(got.status().message()), which);
      } else if (ask.operation == Ask::Operation::kRequest &&
                 (got->allowed != expected.allowed ||
                  (i == ask.repeat && !FiguresMatch(expected, *got)))) {
        difference =
            fmt::format("expected {}, got {}{}", Text(expected), Text(*got, expected), which);
      }
    }
    if (!difference.empty()) Differ(step.line, std::move(difference));
  }

  const Scenario& scenario_;
  Driver& driver_;
  std::vector<ScenarioRule> rules_;
  std::vector<ScenarioDifference> differences_;
};

}  // namespace

std::vector<ScenarioDifference> RunScenario(const Scenario& scenario, Driver& driver) {
  return Run(scenario, driver).Steps();
}

std::string Describe(std::string_view path, const ScenarioDifference& difference) {
  return fmt::format("{}:{}: {}", path, difference.line, difference.message);
}

}  // namespace headgate::testing
