// Counts events and renders all metrics, as Prometheus text or as JSON.
//
// Each thread counts its own decisions and requests in its own memory; rendering adds them up.
// Values that belong to other parts (the store, the connections, the rules) are collected at that
// moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/limiter/observer.h"
#include "headgate/observe/catalog.h"
#include "headgate/observe/rule_names.h"
#include "headgate/observe/series.h"
#include "headgate/observe/sink.h"

namespace headgate::observe {

struct MetricsOptions {
  // The number of deciding threads. Each running thread has a unique number from 0 to workers − 1.
  uint32_t workers = 1;
  // Draw it from the operating system's random source.
  base::HashSecret secret{};
};

class Metrics final : public limiter::Observer {
 public:
  static constexpr uint32_t kFrontsMax = 8;
  static constexpr uint32_t kRolloutsMax = 255;
  enum class Front : uint8_t {};

  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;

  // ---- Call these before the threads start.
  // Registers a front. `name` is its value in labels.
  Front AddFront(std::string_view name);
  // `collect` is called at each rendering, on its thread. It must not call back into
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

  // All metrics in the order of the catalog (metric_families.h). Thread-safe.
  std::string Render();
  std::string RenderJson();

 private:
  struct Worker;
  void CollectOwn(class MetricFamilies& sink);
  void CollectPermits(MetricFamilies& sink);
  void Collect(MetricFamilies& sink);

  const uint32_t worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  SeriesTable series_;
  const uint32_t own_limits_row_;
  RuleNames rollouts_{kRolloutsMax};
  RuleNames concurrency_{kRolloutsMax};
  std::vector<std::string> fronts_;
  std::vector<std::function<void(Sink&)>> collectors_;
  std::mutex render_mutex_;
};

}  // namespace headgate::observe
