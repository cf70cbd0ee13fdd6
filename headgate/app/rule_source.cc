#include "headgate/app/rule_source.h"

#include "headgate/app/rule_files.h"

namespace headgate::app {

RuleSource::RuleSource(const Settings& settings, limiter::Limiter& limiter, const base::DisciplinedClock& clock,
                       observe::Log& log)
    : paths_(settings.rules),
      one_liners_(settings.rule),
      merge_domains_(settings.merge_domains == "yes"),
      limiter_(limiter),
      clock_(clock),
      log_(log) {}

std::vector<rule::Problem> RuleSource::LoadFirst() {
  if (paths_.empty()) {
    watch::FileRules::Loaded loaded = Load({});
    if (!loaded.problems.empty()) return std::move(loaded.problems);
    const absl::Status published = Publish(std::move(loaded.rules));
    if (!published.ok()) return {rule::WholeFileProblem("", std::string(published.message()))};
    if (one_liners_.empty()) {
      log_.Info("rules.none",
                {{"reason", std::string_view("no rule source is configured")},
                 {"effect", std::string_view("every rule-based request passes; CL.THROTTLE brings its own limits")},
                 {"hint", std::string_view("start with --rules PATH, or --rule TEXT")}});
    }
  } else {
    StartWatching();
  }
  loaded_first_ = true;
  return std::move(first_problems_);
}

void RuleSource::StartWatching() {
  watch_ = std::make_unique<watch::FileRules>(
      paths_, [this](std::span<const watch::FileText> files) { return Load(files); },
      [this](std::shared_ptr<const rule::RuleSet> rules) { return Publish(std::move(rules)); },
      [this](const watch::FileRules::Refusal& refusal) { OnRefusal(refusal); });
  Step();
}

std::optional<base::Instant> RuleSource::wake_at() const {
  if (!watch_) return std::nullopt;
  return watch_->wake_at();
}

void RuleSource::Step() {
  if (!watch_) return;
  watch_->Step(clock_.Now());
  polling_.store(watch_->polling(), std::memory_order_relaxed);
  watch_failures_.store(watch_->watch_failures(), std::memory_order_relaxed);
}

void RuleSource::Reload() {
  if (!watch_) return;
  log_.Info("rules.reload");
  watch_failures_before_.fetch_add(watch_failures_.exchange(0));
  StartWatching();
}

watch::FileRules::Loaded RuleSource::Load(std::span<const watch::FileText> files) {
  std::vector<rule::RuleFile> named;
  named.reserve(files.size());
  for (const watch::FileText& file : files) named.push_back({.name = file.path, .text = file.text});
  rule::LoadResult result = LoadNamed(named, one_liners_, merge_domains_);
  for (const rule::Problem& warning : result.warnings) {
    log_.Warning("rules.warning", {{"what", PlaceAndMessage(warning)}, {"hint", std::string_view(warning.hint)}});
  }
  return {.rules = std::move(result.rules), .problems = std::move(result.problems)};
}

absl::Status RuleSource::Publish(std::shared_ptr<const rule::RuleSet> rules) {
  const size_t count = rules->rules().size();
  const base::Instant now = clock_.Now();
  HEADGATE_RETURN_IF_ERROR(limiter_.OnRules(std::move(rules), now));
  loaded_.fetch_add(1, std::memory_order_relaxed);
  problem_count_.store(0, std::memory_order_relaxed);
  loaded_at_ns_.store(now.ns, std::memory_order_relaxed);
  log_.Info("rules.loaded", {{"rules", uint64_t{count}}});
  return absl::OkStatus();
}

void RuleSource::OnRefusal(const watch::FileRules::Refusal& refusal) {
  const std::span<const rule::Problem> problems = refusal.problems;
  refused_.fetch_add(1, std::memory_order_relaxed);
  problem_count_.store(rule::CountOf(problems), std::memory_order_relaxed);
  const bool none_in_force = limiter_.rules() == nullptr;
  if (none_in_force && refusal.awaited) {
    for (const rule::Problem& problem : problems) {
      log_.Warning("rules.awaited",
                   {{"reason", PlaceAndMessage(problem)},
                    {"effect", std::string_view("not ready: rule-based requests get an error until rules are loaded")},
                    {"hint", std::string_view("put a rule file there; it is loaded at once")}});
    }
    return;
  }
  if (!loaded_first_) {
    first_problems_.assign(problems.begin(), problems.end());
    return;
  }
  log_.Error(
      "rules.refused",
      {{"problems", uint64_t{problem_count_.load(std::memory_order_relaxed)}},
       {"effect", std::string_view(none_in_force ? "not ready: there are no rules yet" : "the rules in force stay")},
       {"hint", std::string_view("`headgate validate FILES` shows the same problems")}});
  for (const rule::Problem& problem : problems) {
    const std::string what = PlaceAndMessage(problem);
    problem.hint.empty() ? log_.Error("rules.problem", {{"what", what}})
                         : log_.Error("rules.problem", {{"what", what}, {"hint", std::string_view(problem.hint)}});
  }
}

void RuleSource::Collect(observe::Sink& sink) const {
  using observe::Metric;
  sink.Set(Metric::kRuleReloads, {"loaded"}, loaded_.load(std::memory_order_relaxed));
  sink.Set(Metric::kRuleReloads, {"refused"}, refused_.load(std::memory_order_relaxed));
  sink.Set(Metric::kRuleProblems, {}, problem_count_.load(std::memory_order_relaxed));
  if (const int64_t at_ns = loaded_at_ns_.load(std::memory_order_relaxed); at_ns != 0) {
    sink.Set(Metric::kRulesAge, {}, clock_.Now() - base::Instant::FromNanos(at_ns));
  }
  sink.Set(Metric::kWatchPolling, {}, uint64_t{polling_.load(std::memory_order_relaxed)});
  sink.Set(Metric::kWatchFailures, {}, watch_failures_before_.load() + watch_failures_.load());
}

}  // namespace headgate::app
