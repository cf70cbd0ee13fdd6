// What is counted, and the Prometheus text of it.
//
// Decisions and requests are counted by the threads that make them, each in memory of its own, and
// summed when somebody asks. What others own (the store, the connections, the rules) is asked for
// at that moment, through collectors.
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

// What a histogram holds, in what its metric counts; in nanoseconds where that is seconds. For each
// of the ascending bounds how many were at most that and above the one before, and one more: larger
// than all.
struct HistogramValue {
  std::span<const uint64_t> bounds;
  std::span<const uint64_t> counts;
  uint64_t sum = 0;
};

// Takes what collectors know.
class Sink {
 public:
  virtual ~Sink() = default;
  // Sets one series of a counter or gauge of the catalogue. One value for each of the metric's
  // labels, in their order; setting a series again replaces it.
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
  // Threads that decide. Their numbers are 0 .. workers − 1, and no two threads that run have the
  // same.
  uint32_t workers = 1;
  // Draw it from the operating system's random source.
  base::HashSecret secret{};
};

class Metrics final : public limiter::Observer {
 public:
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
  static constexpr uint32_t kFrontsMax = 8;
  enum class Front : uint8_t {};

  explicit Metrics(const MetricsOptions& options);
  ~Metrics() override;

  // ---- Before the threads run.
  // A front under the name that it has in labels.
  Front AddFront(std::string_view name);
  // Called at each Render, by the thread that renders; must not call back.
  void AddCollector(std::function<void(Sink&)> collect);

  // ---- The limiter's events. No lock and no allocation, except where a series or a client's value
  // is seen for the first time.
  uint32_t OnRule(const rule::Rule& rule) override;
  void OnDecision(uint32_t worker, const limiter::DecisionEvent& event) override;
  // Under a domain that no rule file can have: the empty one.
  void OnOwnLimits(uint32_t worker, limiter::Outcome outcome, uint64_t count) override;

  // ---- The fronts' events. No lock, no allocation.
  // `requests` were decided together in `elapsed`.
  void OnBatch(uint32_t worker, Front front, uint64_t requests, base::Duration elapsed);
  // Requests that were decided together had to wait for the shared store: `elapsed` from their
  // bytes to their answers.
  void OnWait(uint32_t worker, Front front, base::Duration elapsed);
  void OnProtocolError(uint32_t worker, Front front);

  // Everything, in the catalogue's order. Thread-safe.
  std::string Render();

 private:
  struct Worker;
  void CollectOwn(class FamilySink& sink);

  const uint32_t worker_count_;
  const std::unique_ptr<Worker[]> workers_;
  SeriesTable series_;
  const uint32_t own_limits_row_;
  std::vector<std::string> fronts_;
  std::vector<std::function<void(Sink&)>> collectors_;
  std::mutex render_mutex_;
};

}  // namespace headgate::observe
