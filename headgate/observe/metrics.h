// Counts events and renders all metrics as Prometheus text.
//
// Each thread counts its own decisions and requests in its own memory; Render adds them up. Values
// that belong to other parts (the store, the connections, the rules) are collected at that moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/limiter/observer.h"
#include "headgate/observe/catalog.h"
#include "headgate/observe/series.h"

namespace headgate::observe {

// The contents of a histogram, in the unit of its metric, or in nanoseconds if that unit is
// seconds. counts[i] is the number of values at most bounds[i] and above the bound before it; one
// more count is for values above all bounds. `bounds` must ascend.
struct HistogramValue {
  std::span<const uint64_t> bounds;
  std::span<const uint64_t> counts;
  uint64_t sum = 0;
};

// Receives the values of collectors.
class Sink {
 public:
  virtual ~Sink() = default;
  // Sets one series of a counter or gauge of the catalog. `labels` has one value for each label of
  // the metric, in order. Setting a series again replaces its value.
  virtual void Set(Metric metric, std::initializer_list<std::string_view> labels,
                   uint64_t value) = 0;
  // The same for a metric whose unit is seconds.
  virtual void Set(Metric metric, std::initializer_list<std::string_view> labels,
                   base::Duration value) = 0;
  // The same for a histogram.
  virtual void Set(Metric metric, std::initializer_list<std::string_view> labels,
                   const HistogramValue& value) = 0;
};

struct MetricsOptions {
  // The number of deciding threads. Each running thread has a unique number from 0 to workers − 1.
  uint32_t workers = 1;
  // Draw it from the operating system's random source.
  base::HashSecret secret{};
};

class Metrics final : public limiter::Observer {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
  static constexpr uint32_t kFrontsMax = 8;
  static constexpr uint32_t kRolloutsMax = 255;
  enum class Front : uint8_t {};

  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;

  // ---- Call these before the threads start.
  // Registers a front. `name` is its value in labels.
  Front AddFront(std::string_view name);
  // `collect` is called at each Render, on the rendering thread. It must not call back into
  // Metrics.
  void AddCollector(std::function<void(Sink&)> collect);

  // ---- Events of the limiter. No lock and no allocation, except when a series or a client's value
  // is seen for the first time.
  uint32_t OnRule(const rule::Rule& rule) override;
  // The first kRolloutsMax rules with a roll-out are counted each for itself, the others together.
  uint32_t OnRollout(const rule::Rule& rule) override;
  // As OnRollout, for rules that limit concurrency.
  uint32_t OnConcurrency(const rule::Rule& rule) override;
  void OnDecision(uint32_t worker, const limiter::DecisionEvent& event) override;
  // Counted under the empty domain, which no rule file can have.
  void OnOwnLimits(uint32_t worker, limiter::Outcome outcome, uint64_t count) override;
  void OnShadowRollout(uint32_t worker, const limiter::RolloutEvent& event) override;
  void OnGivenLimit(uint32_t worker, rule::Given given) override;
  void OnPermits(uint32_t worker, const limiter::PermitEvent& event) override;

  // ---- Events of the fronts. No lock, no allocation.
  // `requests` requests were decided together, which took `elapsed`.
  void OnBatch(uint32_t worker, Front front, uint64_t requests, base::Duration elapsed);
  // Requests that were decided together had to wait for the shared store. `elapsed` is the time
  // from the arrival of their bytes to their answers.
  void OnWait(uint32_t worker, Front front, base::Duration elapsed);
  void OnProtocolError(uint32_t worker, Front front);

  // Renders all metrics in the order of the catalog. Thread-safe.
  std::string Render();

 private:
  struct Worker;
  void CollectOwn(class FamilySink& sink);

  const uint32_t worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  SeriesTable series_;
  const uint32_t own_limits_row_;
  // Rules that are counted each for itself, after one for all others.
  class FewRules {
   public:
    uint32_t Add(const rule::Rule& rule);
    std::vector<SeriesTable::Name> List() const;

   private:
    mutable std::mutex mutex_;
    std::vector<SeriesTable::Name> names_{{.domain = "other", .rule = "other"}};
  };

  void CollectPermits(FamilySink& sink);

  FewRules rollouts_;
  FewRules concurrency_;
  std::vector<std::string> fronts_;
  std::vector<std::function<void(Sink&)>> collectors_;
  std::mutex render_mutex_;
};

}  // namespace headgate::observe
