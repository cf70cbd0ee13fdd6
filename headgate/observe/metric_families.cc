#include "headgate/observe/metric_families.h"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/json.h"

namespace headgate::observe {
namespace {

bool IsTime(const MetricSpec& spec) { return spec.unit == "seconds"; }

double Seconds(base::Duration d) { return std::chrono::duration<double>(d).count(); }

// A bound or a sum of a histogram in the unit of the metric.
double InUnit(const MetricSpec& spec, uint64_t value) {
  return static_cast<double>(value) / (IsTime(spec) ? 1e9 : 1);
}

prometheus::MetricType TypeOf(const MetricSpec& spec) {
  switch (spec.type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  __builtin_unreachable();
}

void AppendMember(std::string_view name, std::string_view text, std::string& out) {
  base::AppendJsonString(name, out);
  out += ':';
  base::AppendJsonString(text, out);
}

// The shortest decimal number that is read as the same value.
void AppendReal(double value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace

void MetricFamilies::Set(Metric metric, std::initializer_list<std::string_view> labels,
                         uint64_t value) {
  const MetricSpec& spec = SpecOf(metric);
  HEADGATE_CHECK(!IsTime(spec) && spec.type != MetricType::kHistogram);
  Ensure(metric, labels).count = value;
}

void MetricFamilies::Set(Metric metric, std::initializer_list<std::string_view> labels,
                         base::Duration value) {
  const MetricSpec& spec = SpecOf(metric);
  HEADGATE_CHECK(IsTime(spec) && spec.type != MetricType::kHistogram);
  Ensure(metric, labels).time = value;
}

void MetricFamilies::Set(Metric metric, std::initializer_list<std::string_view> labels,
                         const HistogramValue& value) {
  HEADGATE_CHECK(SpecOf(metric).type == MetricType::kHistogram &&
                 value.counts.size() == value.bounds.size() + 1);
  Series& series = Ensure(metric, labels);
  series.count = 0;
  series.sum = value.sum;
  series.buckets.clear();
  for (size_t i = 0; i < value.bounds.size(); ++i) {
    series.count += value.counts[i];
    series.buckets.push_back({.bound = value.bounds[i], .count = series.count});
  }
  series.count += value.counts.back();
}

void MetricFamilies::Append(Metric metric, std::initializer_list<std::string_view> labels,
                            uint64_t value) {
  Add(metric, labels).count = value;
}

MetricFamilies::Series& MetricFamilies::Add(Metric metric,
                                            std::span<const std::string_view> labels) {
  HEADGATE_CHECK(labels.size() == SpecOf(metric).label_count());
  Series& series = families_[static_cast<size_t>(metric)].emplace_back();
  series.labels.assign(labels.begin(), labels.end());
  return series;
}

MetricFamilies::Series& MetricFamilies::Ensure(Metric metric,
                                               std::span<const std::string_view> labels) {
  auto& all = families_[static_cast<size_t>(metric)];
  const auto series = std::find_if(all.begin(), all.end(), [&](const Series& candidate) {
    return std::equal(labels.begin(), labels.end(), candidate.labels.begin(),
                      candidate.labels.end());
  });
  return series != all.end() ? *series : Add(metric, labels);
}

std::string MetricFamilies::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricSpec& spec : Catalog()) {
    const std::vector<Series>& all = families_[static_cast<size_t>(spec.metric)];
    if (all.empty()) continue;
    prometheus::MetricFamily& family = families.emplace_back(
        prometheus::MetricFamily{std::string(spec.name), std::string(spec.help), TypeOf(spec), {}});
    family.metric.reserve(all.size());
    for (const Series& series : all) {
      prometheus::ClientMetric& shown = family.metric.emplace_back();
      for (size_t i = 0; i < series.labels.size(); ++i)
        shown.label.push_back({std::string(spec.label_names[i]), series.labels[i]});
      if (spec.type == MetricType::kHistogram) {
        shown.histogram.sample_count = series.count;
        shown.histogram.sample_sum = InUnit(spec, series.sum);
        for (const Bucket& bucket : series.buckets)
          shown.histogram.bucket.push_back({bucket.count, InUnit(spec, bucket.bound)});
        shown.histogram.bucket.push_back({series.count, std::numeric_limits<double>::infinity()});
        continue;
      }
      const double value = IsTime(spec) ? Seconds(series.time) : static_cast<double>(series.count);
      (spec.type == MetricType::kCounter ? shown.counter.value : shown.gauge.value) = value;
    }
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

void MetricFamilies::AppendSeriesJson(const MetricSpec& spec, const Series& series,
                                      std::string& out) const {
  out += "{\"labels\":{";
  for (size_t i = 0; i < series.labels.size(); ++i) {
    if (i > 0) out += ',';
    AppendMember(spec.label_names[i], series.labels[i], out);
  }
  if (spec.type != MetricType::kHistogram) {
    out += "},\"value\":";
    IsTime(spec) ? AppendReal(Seconds(series.time), out)
                 : base::AppendJsonNumber(series.count, out);
    out += '}';
    return;
  }
  out += "},\"count\":";
  base::AppendJsonNumber(series.count, out);
  out += ",\"sum\":";
  AppendReal(InUnit(spec, series.sum), out);
  out += ",\"buckets\":[";
  for (size_t i = 0; i < series.buckets.size(); ++i) {
    out += i > 0 ? ",{\"le\":" : "{\"le\":";
    AppendReal(InUnit(spec, series.buckets[i].bound), out);
    out += ",\"count\":";
    base::AppendJsonNumber(series.buckets[i].count, out);
    out += '}';
  }
  out += "]}";
}

std::string MetricFamilies::Json() const {
  std::string out = "{\"metrics\":[";
  for (const MetricSpec& spec : Catalog()) {
    const std::vector<Series>& all = families_[static_cast<size_t>(spec.metric)];
    if (all.empty()) continue;
    out += out.ends_with('[') ? "\n{" : ",\n{";
    AppendMember("name", spec.name, out);
    out += ',';
    AppendMember("type", Name(spec.type), out);
    out += ',';
    AppendMember("unit", spec.unit, out);
    out += ',';
    AppendMember("help", spec.help, out);
    out += ",\"series\":[";
    for (size_t i = 0; i < all.size(); ++i) {
      if (i > 0) out += ',';
      AppendSeriesJson(spec, all[i], out);
    }
    out += "]}";
  }
  out += "]}\n";
  return out;
}

}  // namespace headgate::observe
