#include "headgate/observe/metrics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/counter.h"
#include "headgate/observe/metric_families.h"

namespace headgate::observe {
namespace {

uint64_t Nanos(base::Duration elapsed) {
  return static_cast<uint64_t>(std::max<int64_t>(0, elapsed.count()));
}

struct FrontCounters {
  base::Counter requests;
  base::Counter protocol_errors;
  base::HistogramCounter<kLatencyBounds> batches;  // nanoseconds
  base::HistogramCounter<kWaitBounds> waits;
};

}  // namespace

struct alignas(64) Metrics::Worker {
  std::array<base::Counter, SeriesTable::kCounterCount> decisions;
  base::Counter series_dropped;
  std::array<base::Counter, rule::kGivenKinds> given_limits;
  // By roll-out, then by the decision of the rule and of the roll-out.
  std::array<std::array<std::array<base::Counter, 2>, 2>, kRolloutsMax + 1> rollouts;
  std::array<std::array<base::Counter, limiter::kPermitEventKinds>, kRolloutsMax + 1> permits;
  std::array<FrontCounters, kFrontsMax> fronts;
};

Metrics::Metrics(const MetricsOptions& options)
    : worker_count_(options.workers),
      workers_(new Worker[options.workers]),
      series_(options.secret),
      own_limits_row_(series_.AddRule("", "CL.THROTTLE")) {}

Metrics::~Metrics() = default;

Metrics::Front Metrics::AddFront(std::string_view name) {
  HEADGATE_CHECK(fronts_.size() < kFrontsMax);
  fronts_.emplace_back(name);
  return static_cast<Front>(fronts_.size() - 1);
}

void Metrics::AddCollector(std::function<void(Sink&)> collect) {
  collectors_.push_back(std::move(collect));
}

uint32_t Metrics::OnRule(const rule::Rule& rule) {
  return series_.AddRule(rule.domain, rule.label());
}

uint32_t Metrics::OnRollout(const rule::Rule& rule) {
  return rollouts_.Add(rule.domain, rule.label());
}

uint32_t Metrics::OnConcurrency(const rule::Rule& rule) {
  return concurrency_.Add(rule.domain, rule.label());
}

void Metrics::OnPermits(uint32_t worker_index, const limiter::PermitEvent& event) {
  HEADGATE_CHECK(worker_index < worker_count_ && event.series <= kRolloutsMax);
  workers_[worker_index].permits[event.series][static_cast<size_t>(event.kind)].Add(event.count);
}

void Metrics::OnShadowRollout(uint32_t worker_index, const limiter::RolloutEvent& event) {
  HEADGATE_CHECK(worker_index < worker_count_ && event.series <= kRolloutsMax);
  workers_[worker_index].rollouts[event.series][event.rule_allows][event.rollout_allows].Add(1);
}

void Metrics::OnDecision(uint32_t worker_index, const limiter::DecisionEvent& event) {
  HEADGATE_CHECK(worker_index < worker_count_);
  Worker& worker = workers_[worker_index];
  uint32_t row = event.series;
  bool dropped = false;
  if (event.rule == nullptr) {
    row = series_.DomainRow(event.domain);
  } else if (event.rule->detailed_metric || event.rule->value_to_metric) {
    const std::optional<uint32_t> detail = series_.DetailRow(event.domain, DetailLabel::Of(event));
    dropped = !detail.has_value();
    row = detail.value_or(row);
  }
  const SeriesTable::Counter counter = series_.CounterOf(row, event.outcome);
  worker.decisions[counter].Add(1);
  // A domain without rules belongs to `other` by definition; that is not a lack of series.
  if (SeriesTable::IsOther(counter) && event.rule != nullptr) dropped = true;
  if (dropped) worker.series_dropped.Add(1);
}

void Metrics::OnOwnLimits(uint32_t worker_index, limiter::Outcome outcome, uint64_t count) {
  HEADGATE_CHECK(worker_index < worker_count_);
  workers_[worker_index].decisions[series_.CounterOf(own_limits_row_, outcome)].Add(count);
}

void Metrics::OnGivenLimit(uint32_t worker, rule::Given given) {
  HEADGATE_CHECK(worker < worker_count_);
  workers_[worker].given_limits[static_cast<size_t>(given)].Add(1);
}

void Metrics::OnBatch(uint32_t worker, Front front, uint64_t requests, base::Duration elapsed) {
  HEADGATE_CHECK(worker < worker_count_ && static_cast<size_t>(front) < fronts_.size());
  FrontCounters& counters = workers_[worker].fronts[static_cast<size_t>(front)];
  counters.requests.Add(requests);
  counters.batches.Add(Nanos(elapsed));
}

void Metrics::OnWait(uint32_t worker, Front front, base::Duration elapsed) {
  HEADGATE_CHECK(worker < worker_count_ && static_cast<size_t>(front) < fronts_.size());
  workers_[worker].fronts[static_cast<size_t>(front)].waits.Add(Nanos(elapsed));
}

void Metrics::OnProtocolError(uint32_t worker, Front front) {
  HEADGATE_CHECK(worker < worker_count_ && static_cast<size_t>(front) < fronts_.size());
  workers_[worker].fronts[static_cast<size_t>(front)].protocol_errors.Add(1);
}

void Metrics::CollectPermits(MetricFamilies& sink) {
  using Kind = limiter::PermitEvent::Kind;
  constexpr std::array<std::string_view, limiter::kPermitEventKinds> kNames{
      "taken",   "given_back", "ended",     "acquired", "released",
      "unknown", "refused",    "looked_at", "expired"};
  const std::vector<RuleNames::Name> rules = concurrency_.List();
  for (size_t i = 0; i < rules.size(); ++i) {
    std::array<uint64_t, limiter::kPermitEventKinds> totals{};
    for (uint32_t w = 0; w < worker_count_; ++w) {
      for (size_t kind = 0; kind < totals.size(); ++kind)
        totals[kind] += workers_[w].permits[i][kind].value();
    }
    for (size_t kind = 0; kind < totals.size(); ++kind) {
      if (totals[kind] > 0)
        sink.Set(Metric::kPermits, {rules[i].domain, rules[i].rule, kNames[kind]}, totals[kind]);
    }
    const auto total = [&](Kind kind) { return totals[static_cast<size_t>(kind)]; };
    const uint64_t gone = total(Kind::kGivenBack) + total(Kind::kEnded);
    if (total(Kind::kTaken) > 0) {
      sink.Set(Metric::kPermitsHeld, {rules[i].domain, rules[i].rule},
               std::max(total(Kind::kTaken), gone) - gone);
    }
  }
}

void Metrics::CollectOwn(MetricFamilies& sink) {
  const std::span<const Worker> workers(workers_.get(), worker_count_);
  const auto sum = [&](auto&& counter_of) {
    uint64_t total = 0;
    for (const Worker& worker : workers) total += counter_of(worker).value();
    return total;
  };
  const auto set_histogram = [&]<const auto & kBounds>(
      Metric metric, std::string_view name, size_t front,
      base::HistogramCounter<kBounds> FrontCounters::*histogram) {
    base::Histogram<kBounds> total;
    for (const Worker& worker : workers) total += (worker.fronts[front].*histogram).Read();
    sink.Set(metric, {name},
             HistogramValue{.bounds = kBounds, .counts = total.counts, .sum = total.sum});
  };

  for (const SeriesTable::Series& series : series_.List()) {
    const uint64_t total =
        sum([&](const Worker& w) -> const auto& { return w.decisions[series.counter]; });
    if (total == 0) continue;
    sink.Append(Metric::kDecisions,
                {series.name.domain, series.name.rule, limiter::Name(series.outcome)}, total);
  }
  const auto word = [](size_t allows) { return allows == 0 ? "denied" : "allowed"; };
  const std::vector<RuleNames::Name> rollouts = rollouts_.List();
  for (size_t i = 0; i < rollouts.size(); ++i) {
    for (const size_t rule_allows : {0u, 1u}) {
      for (const size_t rollout_allows : {0u, 1u}) {
        const uint64_t total = sum([&](const Worker& w) -> const auto& {
          return w.rollouts[i][rule_allows][rollout_allows];
        });
        if (total == 0) continue;
        sink.Set(Metric::kRolloutDecisions,
                 {rollouts[i].domain, rollouts[i].rule, word(rule_allows), word(rollout_allows)},
                 total);
      }
    }
  }
  constexpr std::array<std::string_view, rule::kGivenKinds> kGivenNames{"plan", "number", "capped",
                                                                        "unknown"};
  for (size_t i = 0; i < kGivenNames.size(); ++i) {
    const uint64_t total = sum([&](const Worker& w) -> const auto& { return w.given_limits[i]; });
    if (total > 0) sink.Set(Metric::kGivenLimits, {kGivenNames[i]}, total);
  }
  CollectPermits(sink);
  sink.Set(Metric::kSeries, {}, series_.series_count());
  sink.Set(Metric::kSeriesDropped, {},
           sum([](const Worker& w) -> const auto& { return w.series_dropped; }));

  for (size_t i = 0; i < fronts_.size(); ++i) {
    const std::string_view name = fronts_[i];
    sink.Set(Metric::kRequests, {name},
             sum([&](const Worker& w) -> const auto& { return w.fronts[i].requests; }));
    sink.Set(Metric::kProtocolErrors, {name},
             sum([&](const Worker& w) -> const auto& { return w.fronts[i].protocol_errors; }));
    set_histogram(Metric::kBatchSeconds, name, i, &FrontCounters::batches);
    set_histogram(Metric::kWaitSeconds, name, i, &FrontCounters::waits);
  }
}

void Metrics::Collect(MetricFamilies& sink) {
  const std::lock_guard lock(render_mutex_);
  CollectOwn(sink);
  for (const auto& collect : collectors_) collect(sink);
}

std::string Metrics::Render() {
  MetricFamilies families;
  Collect(families);
  return families.Text();
}

std::string Metrics::RenderJson() {
  MetricFamilies families;
  Collect(families);
  return families.Json();
}

}  // namespace headgate::observe
