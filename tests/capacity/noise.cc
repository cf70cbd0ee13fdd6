#include "tests/capacity/noise.h"

#include <algorithm>
#include <cmath>

namespace headgate::capacity {
namespace {

using base::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Noise kNoises[] = {
    {.name = "fixed"},
    {.name = "exponential", .upstream = {.kind = Service::kExponential}},
    {.name = "1 ms or 100 ms", .upstream = {.kind = Service::kTwoClasses}},
    {.name = "pauses of 500 ms",
     .upstream = {.pause_every = seconds(7)},
     .best = 1000 * 13.0 / 14,
     .best_then = 1000 * 13.0 / 14},
    {.name = "a third of all requests fail at once",
     .event = [](Sharing& sharing) { sharing.upstream().SetFailing(33); },
     .failing_percent = 33},
    {.name = "base latency doubles",
     .event = [](Sharing& sharing) { sharing.upstream().SetDelay(milliseconds(10)); }},
    {.name = "base latency is five times as long",
     .event = [](Sharing& sharing) { sharing.upstream().SetDelay(milliseconds(40)); }},
    // 10 workers: 60 requests per second take 10 ms and all others 30 ms.
    {.name = "requests of another client take 30 ms",
     .event =
         [](Sharing& sharing) {
           sharing.SetRate(kStorm, 0);
           sharing.SetRate(kSecondStorm, 1940);
         },
     .best_then = 60 + 9.4 / 0.03},
    {.name = "half as many workers",
     .event = [](Sharing& sharing) { sharing.upstream().SetWorkers(5, sharing.now()); },
     .best_then = 500},
    {.name = "twice as many workers",
     .event =
         [](Sharing& sharing) {
           sharing.SetRate(kStorm, 3940);
           sharing.upstream().SetWorkers(20, sharing.now());
         },
     .best_then = 2000},
    {.name = "a restart of 5 s", .event = [](Sharing& sharing) { sharing.Restart(seconds(5)); }},
    {.name = "sheds load beyond 5 that wait", .upstream = {.queue_max = 5}},
    {.name = "a burst each 100 ms", .burst_every = milliseconds(100)},
    {.name = "a burst each second", .burst_every = seconds(1)},
};

class Measurement {
 public:
  Measurement(const Noise& noise, uint64_t seed) : noise_(noise), sharing_(Options(noise, seed)) {}

  // Runs for `time`; returns when the capacity was last more than 15 % off, in seconds.
  double Follow(Duration time, double best) {
    const base::Instant start = sharing_.now();
    double last = 0;
    while (sharing_.now() - start < time) {
      sharing_.Run(milliseconds(100));
      if (std::abs(sharing_.Found() / best - 1) > 0.15)
        last = std::chrono::duration<double>(sharing_.now() - start).count();
    }
    return last;
  }
  Sharing& sharing() { return sharing_; }

 private:
  static SharingOptions Options(const Noise& noise, uint64_t seed) {
    return {.seed = seed,
            .upstream = noise.upstream,
            .clients = {{.name = "A", .per_second = 20},
                        {.name = "B", .per_second = 20},
                        {.name = "C", .per_second = 20},
                        {.name = "D", .per_second = 1940, .burst_every = noise.burst_every},
                        {.name = "E", .length_percent = 300}}};
  }

  const Noise& noise_;
  Sharing sharing_;
};

double PercentOf(uint64_t count, double time_s, double best) {
  return 100 * static_cast<double>(count) / time_s / best;
}

}  // namespace

std::span<const Noise> Noises() { return kNoises; }

NoiseResult Measure(const Noise& noise, uint64_t seeds) {
  const double best_answered = noise.best_then * (100 - noise.failing_percent) / 100;
  NoiseResult worst;
  uint64_t sent = 0;
  uint64_t in_flight = 0;
  uint64_t refused = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Measurement measurement(noise, seed);
    Sharing& sharing = measurement.sharing();
    double found = measurement.Follow(seconds(10), noise.best);
    for (size_t client = 0; client < kQuietClients; ++client) sharing.TakeLoad(client);
    sharing.TakeAnswered();
    const double late = measurement.Follow(seconds(20), noise.best);
    if (late > 0) found = 10 + late;
    worst.found_s = std::max(worst.found_s, found);
    worst.goodput_percent =
        std::min(worst.goodput_percent, PercentOf(sharing.TakeAnswered(), 20, noise.best));
    if (noise.event != nullptr) noise.event(sharing);
    double followed = measurement.Follow(seconds(30), noise.best_then);
    sharing.TakeAnswered();
    const double last = measurement.Follow(seconds(30), noise.best_then);
    if (last > 0) followed = 30 + last;
    worst.followed_s = std::max(worst.followed_s, followed);
    worst.goodput_then_percent =
        std::min(worst.goodput_then_percent, PercentOf(sharing.TakeAnswered(), 30, best_answered));
    worst.off_percent =
        std::max(worst.off_percent, 100 * std::abs(sharing.Found() / noise.best_then - 1));
    for (size_t client = 0; client < kQuietClients; ++client) {
      const ClientLoad load = sharing.TakeLoad(client);
      sent += load.sent;
      in_flight += load.refused_in_flight;
      refused += load.refused;
    }
  }
  worst.quiet_in_flight_percent = PercentOf(in_flight, 1, static_cast<double>(sent));
  worst.quiet_refused_percent = PercentOf(refused, 1, static_cast<double>(sent));
  return worst;
}

}  // namespace headgate::capacity
