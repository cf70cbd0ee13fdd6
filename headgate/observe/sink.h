// The interface that collectors of metrics write to.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/observe/catalog.h"

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

}  // namespace headgate::observe
