#include "headgate/follow/rules.h"

#include <fmt/format.h>

#include "headgate/base/hash.h"
#include "headgate/base/host_name.h"
#include "headgate/observe/problem_log.h"
#include "headgate/rule/concurrency.h"
#include "headgate/rule/limit_text.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/rule_difference.h"
#include "headgate/watch/file/file_journal.h"

namespace headgate::follow {

namespace {

// A source that does not report within this time counts as one that has no rules yet: it is
// awaited.
constexpr base::Duration kFirstRulesTimeout = std::chrono::seconds(5);
// At most this many rules of one change are named in the log, all in one line, because the log has
// a bound on lines.
constexpr size_t kDifferencesLoggedMax = 10;

// The same on all machines for the same texts in the same order. The names of files do not count.
std::string FingerprintOf(std::span<const rule::read::RuleFile> files,
                          std::span<const std::string> one_liners, bool merge_domains) {
  std::string all = merge_domains ? "merged" : "";
  const auto add = [&all](std::string_view kind, std::string_view text) {
    all += fmt::format("{}{}:", kind, text.size());
    all += text;
  };
  for (const rule::read::RuleFile& file : files) {
    if (file.limit_of) add("key", *file.limit_of);
    add("text", file.text);
  }
  for (const std::string& line : one_liners) add("line", line);
  // Nobody gains from a collision, so the secret is public.
  constexpr base::HashSecret kPublic{};
  return fmt::format("{:016x}", base::HashBytes(kPublic, base::KeyKind::kRaw, all).low);
}

// "10 per 20s, fixed_window and 20 in flight, concurrency, ttl 30s".
std::string LimitsOf(const std::optional<rule::Rule>& rule) {
  if (!rule) return "none";
  std::string text;
  const auto add = [&text](const std::string& limit) {
    text += (text.empty() ? "" : " and ") + limit;
  };
  for (const rule::RuleLimit& limit : rule->limits) add(Describe(limit));
  if (rule->concurrency) add(Describe(*rule->concurrency));
  return text.empty() ? "unlimited" : text;
}

}  // namespace

Rules::Rules(RulesOptions options, limiter::Limiter& limiter, const base::DisciplinedClock& clock,
             net::EventLoop& loop, observe::Log& log)
    : options_(std::move(options)), limiter_(limiter), clock_(clock), loop_(loop), log_(log) {}

std::vector<rule::Problem> Rules::LoadFirst() {
  auto sources = watch::OpenSources(options_.places, options_.sources, loop_);
  if (!sources.ok()) return {rule::WholeFileProblem("", std::string(sources.status().message()))};
  follower_ = std::make_unique<watch::RuleFollower>(
      *std::move(sources),
      [this](std::span<const rule::read::RuleFile> files) { return Load(files); },
      [this](const watch::RuleFollower::Loaded& loaded,
             std::span<const rule::read::RuleFile> files) { return Publish(loaded, files); },
      [this](const watch::RuleFollower::Refusal& refusal) { OnRefusal(refusal); });
  for (rule::Source* const source : follower_->sources())
    source->Tell([this](const rule::Source::News& news) { OnNews(news); });
  MakeEditor();
  follower_->Start();
  loop_.RunUntil([this] { return follower_->heard_from_all(); }, kFirstRulesTimeout);
  loaded_first_ = true;
  if (options_.places.empty() && options_.one_liners.empty() && first_problems_.empty()) {
    log_.Info(
        "rules.not_configured",
        {{"reason", std::string_view("no rule source is configured")},
         {"effect",
          std::string_view("every rule-based request passes; CL.THROTTLE brings its own limits")},
         {"hint", std::string_view("start with --rules PATH, or --rule TEXT")}});
  }
  return std::move(first_problems_);
}

void Rules::Reload() {
  if (options_.places.empty()) return;
  log_.Info("rules.reload_requested");
  follower_->Refresh();
}

watch::RuleFollower::Loaded Rules::Load(std::span<const rule::read::RuleFile> files) const {
  using rule::read::MergeDomains;
  rule::read::LoadResult result = rule::read::LoadRules(
      files, {.merge_domains = options_.merge_domains ? MergeDomains::kYes : MergeDomains::kNo,
              .one_liners = options_.one_liners});
  return {.rules = std::move(result.rules),
          .problems = std::move(result.problems),
          .warnings = std::move(result.warnings)};
}

// The store refuses further hits with an error, so every instance refuses these requests.
void Rules::WarnOfLargeLogs(const rule::RuleSet& rules) const {
  for (const rule::Rule& rule : rules.rules()) {
    for (const rule::RuleLimit& limit : rule.limits) {
      const algorithm::LimitSpec& spec = limit.limit.spec();
      if (!KeepsHits(spec.algorithm) || spec.requests <= options_.log_requests_max) continue;
      log_.Warning("rules.log_too_large",
                   {{"domain", std::string_view(rule.domain)},
                    {"rule", rule.label()},
                    {"requests", uint64_t{spec.requests}},
                    {"reason",
                     fmt::format("a bucket in the store holds {} hits", options_.log_requests_max)},
                    {"effect", std::string_view("requests beyond them fail, as without the store")},
                    {"hint", std::string_view("lower the limit, or use sliding_window_counter")}});
    }
  }
}

absl::Status Rules::Publish(const watch::RuleFollower::Loaded& loaded,
                            std::span<const rule::read::RuleFile> files) {
  for (const rule::Problem& warning : loaded.warnings) {
    log_.Warning("rules.warning_found",
                 {{"reason", PlaceAndMessage(warning)}, {"hint", std::string_view(warning.hint)}});
  }
  WarnOfLargeLogs(*loaded.rules);
  const size_t count = loaded.rules->rules().size();
  const base::Instant now = clock_.Now();
  const std::shared_ptr<const rule::RuleSet> before = limiter_.rules();
  HEADGATE_RETURN_IF_ERROR(limiter_.OnRules(loaded.rules, now));
  loaded_.fetch_add(1, std::memory_order_relaxed);
  loaded_at_ns_.store(now.ns, std::memory_order_relaxed);
  in_force_ = {.generation = in_force_.generation + 1,
               .fingerprint = FingerprintOf(files, options_.one_liners, options_.merge_domains)};
  log_.Info("rules.loaded", {{"rules", uint64_t{count}}, {"fingerprint", in_force_.fingerprint}});
  if (before != nullptr) LogDifferences(*before, *loaded.rules);
  follower_->Show(in_force_);
  if (on_in_force_) on_in_force_(in_force_);
  return absl::OkStatus();
}

void Rules::LogDifferences(const rule::RuleSet& before, const rule::RuleSet& after) const {
  const std::vector<rule::RuleDifference> differences = rule::DifferencesOf(before, after);
  if (differences.empty()) return;
  const size_t named = std::min(differences.size(), kDifferencesLoggedMax);
  std::string text;
  for (const rule::RuleDifference& difference : std::span(differences).first(named)) {
    const rule::Rule& rule = difference.after ? *difference.after : *difference.before;
    text += fmt::format("{}{} {}: {} -> {}", text.empty() ? "" : "; ", rule::Printable(rule.domain),
                        rule::Printable(rule.label()), LimitsOf(difference.before),
                        LimitsOf(difference.after));
    if (!difference.before || !difference.after) continue;
    const auto others = rule::OtherFieldsThatDiffer(*difference.before, *difference.after);
    if (!others.empty()) text += fmt::format(" (changed: {})", fmt::join(others, ", "));
  }
  log_.Info("rules.changed", {{"rules", uint64_t{differences.size()}},
                              {"left_out", uint64_t{differences.size() - named}},
                              {"changes", text}});
}

void Rules::OnRefusal(const watch::RuleFollower::Refusal& refusal) {
  const std::span<const rule::Problem> problems = refusal.problems;
  refused_.fetch_add(1, std::memory_order_relaxed);
  const bool none_in_force = limiter_.rules() == nullptr;
  if (none_in_force && refusal.awaited) {
    for (const rule::Problem& problem : problems) {
      log_.Warning(
          "rules.awaited",
          {{"reason", PlaceAndMessage(problem)},
           {"effect",
            std::string_view("not ready: rule-based requests get an error until rules are loaded")},
           {"hint", std::string_view(problem.hint)}});
    }
    return;
  }
  if (!loaded_first_ && none_in_force) {
    first_problems_.assign(problems.begin(), problems.end());
    return;
  }
  log_.Error("rules.refused",
             {{"problems", uint64_t{rule::CountOf(problems)}},
              {"effect", std::string_view(none_in_force ? "not ready: there are no rules yet"
                                                        : "the rules in force stay in force")},
              {"hint", std::string_view("each problem follows; `headgate validate` shows those of "
                                        "files")}});
  observe::LogProblems("rules.problem_found", problems, log_);
}

void Rules::OnNews(const rule::Source::News& news) {
  using Kind = rule::Source::News::Kind;
  switch (news.kind) {
    case Kind::kFollowed:
      log_.Info("rules.source_followed", {{"source", news.source}});
      return;
    case Kind::kLost:
      log_.Warning("rules.source_lost",
                   {{"source", news.source},
                    {"reason", news.reason},
                    {"effect", std::string_view("the last good rules stay in force")}});
      return;
    case Kind::kChangesMissed:
      log_.Warning(
          "rules.changes_missed",
          {{"source", news.source},
           {"reason", news.reason},
           {"effect",
            std::string_view("a comparison found them up to a minute late; they are read now")}});
      return;
    case Kind::kCopyUsed:
      log_.Warning("rules.copy_used",
                   {{"source", news.source},
                    {"copy", news.copy},
                    {"effect", std::string_view("the rules of the copy are in force until the "
                                                "source can be read")}});
      return;
    case Kind::kCopyNotWritten:
      log_.Warning("rules.copy_not_written",
                   {{"source", news.source},
                    {"copy", news.copy},
                    {"reason", news.reason},
                    {"effect", std::string_view("a start without the source gets older rules, or "
                                                "none; it is written at the next change")}});
      return;
    case Kind::kCopyWritten:
      log_.Info("rules.copy_written", {{"source", news.source}, {"copy", news.copy}});
      return;
  }
}

void Rules::MakeEditor() {
  watch::RuleEditor::Options options{
      .journal = options_.audit_log.empty()
                     ? nullptr
                     : std::make_unique<watch::file::FileJournal>(options_.audit_log),
      .instance = base::HostName(),
      .rules = [this] { return limiter_.rules(); },
      .count_live = {},
      .on_edited = [this](const rule::PastChange& change,
                          const absl::Status& status) { OnEdited(change, status); },
      .on_outcome_not_noted =
          [this](const rule::PastChange& change, const absl::Status& status) {
            log_.Warning(
                "rules.outcome_not_noted",
                {{"action", change.action},
                 {"document", change.document},
                 {"outcome", change.outcome},
                 {"reason", std::string(status.message())},
                 {"effect", "the change counts, and its note in the audit log stays \"begun\""}});
          }};
  if (options_.limits != nullptr)
    options.count_live = [this](auto& differences) { CountLive(differences); };
  editor_ =
      std::make_unique<watch::RuleEditor>(*follower_, loop_, clock_.source(), std::move(options));
}

void Rules::CountLive(std::vector<rule::RuleDifference>& differences) const {
  for (rule::RuleDifference& difference : differences) {
    const rule::Rule& rule = difference.before ? *difference.before : *difference.after;
    difference.live_buckets = options_.limits->BucketsOf(store::LimitOwner::Rule(rule.identity));
  }
}

void Rules::OnEdited(const rule::PastChange& change, const absl::Status& status) {
  (status.ok() ? edits_done_ : edits_failed_).fetch_add(1, std::memory_order_relaxed);
  const std::string user = change.user.empty() ? "nobody logged in" : change.user;
  if (status.ok()) {
    log_.Info("rules.edited", {{"action", change.action},
                               {"document", change.document},
                               {"user", user},
                               {"address", change.address},
                               {"version", change.new_version}});
    return;
  }
  log_.Warning("rules.edit_failed", {{"action", change.action},
                                     {"document", change.document},
                                     {"user", user},
                                     {"address", change.address},
                                     {"reason", std::string(status.message())}});
}

void Rules::Collect(observe::Sink& sink) const {
  using observe::Metric;
  sink.Set(Metric::kRuleReloads, {"loaded"}, loaded_.load(std::memory_order_relaxed));
  sink.Set(Metric::kRuleReloads, {"refused"}, refused_.load(std::memory_order_relaxed));
  sink.Set(Metric::kRuleProblems, {}, follower_->problem_count());
  sink.Set(Metric::kRuleEdits, {"done"}, edits_done_.load(std::memory_order_relaxed));
  sink.Set(Metric::kRuleEdits, {"failed"}, edits_failed_.load(std::memory_order_relaxed));
  if (const int64_t at_ns = loaded_at_ns_.load(std::memory_order_relaxed); at_ns != 0) {
    sink.Set(Metric::kRulesAge, {}, clock_.Now() - base::Instant::FromNanos(at_ns));
  }
  const rule::Source::Figures watch = follower_->figures();
  sink.Set(Metric::kWatchPolling, {}, uint64_t{watch.polling});
  sink.Set(Metric::kWatchFailures, {}, watch.failures);
  sink.Set(Metric::kConfigAge, {}, watch.age);
  sink.Set(Metric::kWatchKept, {}, watch.kept);
  sink.Set(Metric::kWatchReads, {}, watch.reads);
  sink.Set(Metric::kWatchMissed, {}, watch.missed);
  sink.Set(Metric::kWatchInstances, {}, uint64_t{follower_->instances()});
}

}  // namespace headgate::follow
