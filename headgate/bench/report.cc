#include "headgate/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "headgate/wire/json.h"

namespace headgate::bench {
namespace {

struct Percentile {
  const char* name;
  double part;
};
constexpr std::array<Percentile, 7> kPercentiles = {{{"50", 0.5},
                                                     {"75", 0.75},
                                                     {"90", 0.9},
                                                     {"99", 0.99},
                                                     {"99.9", 0.999},
                                                     {"99.99", 0.9999},
                                                     {"99.999", 0.99999}}};

double Milliseconds(base::Duration d) { return static_cast<double>(d.count()) / 1e6; }

std::string_view LoopOf(const Report& report) {
  return report.rate_asked > 0 ? "open loop" : "closed loop";
}

}  // namespace

double Report::rate() const {
  const double seconds = static_cast<double>(duration.count()) / 1e9;
  return seconds > 0 ? static_cast<double>(counts.answered()) / seconds : 0;
}

std::string ShowLatency(base::Duration latency) {
  const double us = static_cast<double>(latency.count()) / 1e3;
  if (us < 1000) return fmt::format("{:.0f}us", us);
  if (us < 1e6) return fmt::format("{:.2f}ms", us / 1e3);
  return fmt::format("{:.2f}s", us / 1e6);
}

std::string AsText(const Report& report) {
  std::string text = fmt::format(
      "{} of {} over {}, {} connections{}\n\n", LoopOf(report),
      report.http ? "/v1/check" : "CL.THROTTLE", report.server, report.connections,
      report.pipeline > 1 ? fmt::format(", {} requests at once on each", report.pipeline) : "");
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "answered   {:.0f}/s", report.rate());
  if (report.rate_asked > 0) {
    fmt::format_to(out, " of {}/s asked ({:.1f} %)", report.rate_asked,
                   100 * report.rate() / static_cast<double>(report.rate_asked));
  }
  fmt::format_to(out, "\nallowed    {}\ndenied     {}\nerrors     {}\n", report.counts.allowed,
                 report.counts.denied, report.counts.errors);
  for (const auto& [kind, count] : report.counts.errors_by_kind)
    fmt::format_to(out, "  {:>7}    {}\n", kind, count);
  if (report.counts.errors > 0)
    fmt::format_to(out, "  the first error is {}\n", report.counts.first_error);
  text.push_back('\n');
  fmt::format_to(out, "latency    {}\n",
                 report.rate_asked > 0 ? "from the moment at which a request was due"
                                       : "of the answers alone; --rate shows what clients wait");
  for (const auto& [name, part] : kPercentiles) {
    // With too few latencies, a high percentile would just be the largest one.
    if (static_cast<double>(report.latencies.count()) * (1 - part) < 1 && part > 0.5) continue;
    fmt::format_to(out, "  {:>7} %  {}\n", name, ShowLatency(report.latencies.Quantile(part)));
  }
  fmt::format_to(out, "  largest    {}\n", ShowLatency(report.latencies.max()));
  return text;
}

std::string AsJson(const Report& report) {
  using wire::Json;
  Json percentiles = Json::Object();
  for (const auto& [name, part] : kPercentiles)
    percentiles.Add(name, Milliseconds(report.latencies.Quantile(part)));
  Json errors_by_kind = Json::Object();
  for (const auto& [kind, count] : report.counts.errors_by_kind) errors_by_kind.Add(kind, count);
  const Json json = Json::Object({
      {"server", report.server},
      {"request", report.http ? "/v1/check" : "CL.THROTTLE"},
      {"loop", report.rate_asked > 0 ? "open" : "closed"},
      {"connections", report.connections},
      {"pipeline", report.pipeline},
      {"duration_s", static_cast<double>(report.duration.count()) / 1e9},
      {"rate_asked", report.rate_asked},
      {"rate", report.rate()},
      {"allowed", report.counts.allowed},
      {"denied", report.counts.denied},
      {"errors", report.counts.errors},
      {"errors_by_kind", std::move(errors_by_kind)},
      {"first_error", report.counts.errors > 0 ? Json(report.counts.first_error) : Json()},
      {"latency_ms", Json::Object({{"min", Milliseconds(report.latencies.min())},
                                   {"mean", Milliseconds(report.latencies.mean())},
                                   {"percentiles", std::move(percentiles)},
                                   {"max", Milliseconds(report.latencies.max())}})},
  });
  return json.IndentedText(2) + "\n";
}

std::string AsPlot(const Report& report) {
  constexpr double kWidth = 760, kHeight = 420, kLeft = 80, kRight = 20, kTop = 50, kBottom = 50;
  constexpr double kNinesMax = 5;
  const double low = std::floor(
      std::log10(std::max(1e3, static_cast<double>(report.latencies.Quantile(0).count()))));
  const double high = std::max(
      low + 1,
      std::ceil(std::log10(std::max(1e3, static_cast<double>(report.latencies.max().count())))));
  const auto x_of = [&](double nines) {
    return kLeft + (kWidth - kLeft - kRight) * nines / kNinesMax;
  };
  const auto y_of = [&](double log_ns) {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (log_ns - low) / (high - low);
  };
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" font-family="sans-serif" font-size="12">
<rect width="{0}" height="{1}" fill="white"/>
<text x="{2}" y="20" font-size="15">{3}, {4:.0f} answers per second, {5} connections</text>
<text x="{2}" y="38" fill="#555">latency by percentile, {6}</text>
)",
      kWidth, kHeight, kLeft, report.http ? "/v1/check" : "CL.THROTTLE", report.rate(),
      report.connections, LoopOf(report));
  const auto out = std::back_inserter(svg);
  for (double log_ns = low; log_ns <= high; ++log_ns) {
    fmt::format_to(out,
                   R"(<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}" stroke="#ddd"/>
<text x="{}" y="{:.1f}" text-anchor="end">{}</text>
)",
                   kLeft, y_of(log_ns), kWidth - kRight, y_of(log_ns), kLeft - 8, y_of(log_ns) + 4,
                   ShowLatency(base::Duration(static_cast<int64_t>(std::pow(10, log_ns)))));
  }
  constexpr std::array<const char*, 6> kTicks = {"0", "90", "99", "99.9", "99.99", "99.999"};
  for (size_t nines = 0; nines < kTicks.size(); ++nines) {
    const double x = x_of(static_cast<double>(nines));
    fmt::format_to(out,
                   R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}" stroke="#eee"/>
<text x="{0:.1f}" y="{3}" text-anchor="middle">{4} %</text>
)",
                   x, kTop, kHeight - kBottom, kHeight - kBottom + 20, kTicks[nines]);
  }
  svg += R"(<polyline fill="none" stroke="#1565c0" stroke-width="2" points=")";
  for (double nines = 0; nines <= kNinesMax + 1e-9; nines += 0.05) {
    const double part = 1 - std::pow(10, -nines);
    if (static_cast<double>(report.latencies.count()) * (1 - part) < 1) break;
    const auto ns =
        static_cast<double>(std::max<int64_t>(1, report.latencies.Quantile(part).count()));
    fmt::format_to(out, "{:.1f},{:.1f} ", x_of(nines), y_of(std::max(low, std::log10(ns))));
  }
  return svg + "\"/>\n</svg>\n";
}

}  // namespace headgate::bench
