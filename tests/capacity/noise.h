// Upstreams that are hard to measure, each under twice the load that it can do. The table of
// docs/internals/capacity.md has the results.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/capacity/sharing.h"

namespace headgate::capacity {

// Three quiet clients ask for 6 % of the capacity together; two others storm, one after the other.
inline constexpr size_t kQuietClients = 3;
inline constexpr size_t kStorm = kQuietClients;
inline constexpr size_t kSecondStorm = kStorm + 1;

struct Noise {
  std::string_view name;
  UpstreamOptions upstream{};
  // Happens after 30 s, if at all.
  void (*event)(Sharing& sharing) = nullptr;
  // Answers per second, before and after the event, of an upstream that is always busy.
  double best = 1000;
  double best_then = 1000;
  uint32_t failing_percent = 0;   // of all requests after the event; goodput is less by this
  base::Duration burst_every{0};  // of the storm
};

std::span<const Noise> Noises();

// The worst of some seeds.
struct NoiseResult {
  double found_s = 0;                 // until the capacity is within 15 % for the rest of 30 s
  double followed_s = 0;              // the same, from the event on, for the rest of a minute
  double off_percent = 0;             // at the end of this minute
  double goodput_percent = 100;       // of the best, in the 30 s before the event
  double goodput_then_percent = 100;  // in the last 30 s of this minute
  // Requests of quiet clients from second 10 on, of all seeds: refused because of those in flight,
  // and refused at all.
  double quiet_in_flight_percent = 0;
  double quiet_refused_percent = 0;
};

NoiseResult Measure(const Noise& noise, uint64_t seeds);

}  // namespace headgate::capacity
