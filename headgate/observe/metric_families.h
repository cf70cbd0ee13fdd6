// The values of all metrics at one moment, in two forms: the text that Prometheus reads, and JSON.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/observe/catalog.h"
#include "headgate/observe/sink.h"

namespace headgate::observe {

class MetricFamilies final : public Sink {
 public:
  MetricFamilies() : families_(kMetricCount) {}

  void Set(Metric metric, std::initializer_list<std::string_view> labels, uint64_t value) override;
  void Set(Metric metric, std::initializer_list<std::string_view> labels,
           base::Duration value) override;
  void Set(Metric metric, std::initializer_list<std::string_view> labels,
           const HistogramValue& value) override;
  // As Set for a new series. It is not looked for, which makes Set slow for thousands of series.
  void Append(Metric metric, std::initializer_list<std::string_view> labels, uint64_t value);

  // Both are in the order of the catalog, without the metrics that have no series.
  std::string Text() const;
  // {"metrics":[{"name":…,"type":…,"unit":…,"help":…,"series":[{"labels":{…},"value":1}]}]}. A
  // histogram has count, sum and buckets in the place of the value. Times are in seconds. The bytes
  // of labels that are not UTF-8 are U+FFFD.
  std::string Json() const;

 private:
  struct Bucket {
    uint64_t bound;
    uint64_t count;  // of the values up to the bound
  };
  struct Series {
    std::vector<std::string> labels;
    uint64_t count = 0;      // of a histogram: of all values
    base::Duration time{0};  // in place of it, if the unit is seconds
    uint64_t sum = 0;        // of a histogram, as its bounds
    std::vector<Bucket> buckets{};
  };

  Series& Add(Metric metric, std::span<const std::string_view> labels);
  Series& Ensure(Metric metric, std::span<const std::string_view> labels);
  void AppendSeriesJson(const MetricSpec& spec, const Series& series, std::string& out) const;

  std::vector<std::vector<Series>> families_;  // by metric
};

}  // namespace headgate::observe
