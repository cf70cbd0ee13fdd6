// Clients of an idle service are not refused: neither because other requests take long, nor because
// nothing is known about the service yet.
#include <gtest/gtest.h>

#include "tests/capacity/rig.h"
#include "tests/capacity/sharing.h"

namespace headgate::capacity {
namespace slow_clients_test {

constexpr uint64_t kSeeds = 6;

struct Endless {
  std::string_view name;
  ClientOptions client{};
};

// Beside each of these, a client asks ten times a second. The service has 10 workers of 10 ms:
// 1000/s.
const Endless kEndless[] = {
    {"20 requests at once that take 30 s",
     {.name = "E", .per_second = 20. / 30, .burst_every = seconds(30), .hangs = seconds(30)}},
    {"200 requests at once that take 30 s",
     {.name = "E", .per_second = 200. / 30, .burst_every = seconds(30), .hangs = seconds(30)}},
    {"20 such requests per second", {.name = "E", .per_second = 20, .hangs = seconds(30)}},
    {"200 such requests per second", {.name = "E", .per_second = 200, .hangs = seconds(30)}},
    {"16 requests at once, each of another client",
     {.name = "E",
      .per_second = 16. / 20,
      .burst_every = seconds(20),
      .hangs = seconds(20),
      .names = 16}},
    {"20 such requests per second, each of another client",
     {.name = "E", .per_second = 20, .hangs = seconds(30), .names = 10'000}},
    {"20 requests per second that take 2 s", {.name = "E", .per_second = 20, .hangs = seconds(2)}},
    {"the client's own requests, each fifth of which takes 30 s",
     {.name = "A", .per_second = 2, .hangs = seconds(30)}},
};

TEST(SlowClients, LockNobodyOutWhenNothingIsKnown) {
  for (const Endless& endless : kEndless) {
    ClientLoad sum;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Sharing sharing({.seed = seed, .clients = {{"A", 10}, endless.client}});
      sharing.Run(minutes(1));
      const ClientLoad load = sharing.TakeLoad(0);
      sum.sent += load.sent;
      sum.refused += load.refused_in_flight;
    }
    EXPECT_LE(sum.refused * 100, sum.sent) << endless.name << ": of " << sum.sent;
  }
}

// A storm has shown the capacity, so the limit is 18.
TEST(SlowClients, LockNobodyOutWhenTheCapacityIsKnown) {
  for (const Endless& endless : kEndless) {
    ClientLoad sum;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      ClientOptions quiet_at_first = endless.client;
      quiet_at_first.per_second = 0;
      Sharing sharing({.seed = seed, .clients = {{"A", 10}, quiet_at_first, {"S", 2000}}});
      sharing.Run(seconds(15));
      sharing.SetRate(2, 0);
      sharing.Run(seconds(5));
      sharing.TakeLoad(0);
      sharing.SetRate(1, endless.client.per_second);
      sharing.Run(minutes(1));
      EXPECT_NEAR(sharing.Found(), 1000, 150) << endless.name << ": long polls teach nothing";
      const ClientLoad load = sharing.TakeLoad(0);
      sum.sent += load.sent;
      sum.refused += load.refused_in_flight;
    }
    EXPECT_LE(sum.refused * 100, sum.sent) << endless.name << ": of " << sum.sent;
  }
}

// ---- Half of the load that the service can bear, from the first request on

struct Half {
  uint32_t workers;
  base::Duration service;
  base::Duration time;
};

constexpr Half kHalfLoaded[] = {{10, milliseconds(10), seconds(30)},
                                {100, milliseconds(500), seconds(30)},
                                {1000, seconds(5), seconds(90)}};

TEST(ColdStarts, HalfLoadIsNotRefused) {
  for (const Half& half : kHalfLoaded) {
    for (const Service kind : kServices) {
      ClientLoad sum;
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const double best = half.workers / std::chrono::duration<double>(half.service).count();
        Sharing sharing(
            {.seed = seed,
             .upstream = {.workers = half.workers, .service = half.service, .kind = kind},
             .clients = {{"A", best / 2}}});
        sharing.Run(half.time);
        const ClientLoad load = sharing.TakeLoad(0);
        sum.sent += load.sent;
        sum.refused += load.refused;
      }
      EXPECT_LE(sum.refused * 1000, sum.sent)
          << ToString(kind) << ", " << half.workers << " workers: of " << sum.sent;
    }
  }
}

// The limit has grown until answers showed the queue, and falls again.
TEST(ColdStarts, AStormMeetsAShortQueueAfterAFewSeconds) {
  for (const Service kind : kServices) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Sharing sharing(
          {.seed = seed, .upstream = {.kind = kind}, .clients = {{"A", 1000}, {"B", 1000}}});
      sharing.Run(seconds(10));
      EXPECT_LE(sharing.limit(), 36u) << ToString(kind) << ", seed " << seed;
      sharing.TakeLoad(0);
      sharing.Run(seconds(10));
      const ClientLoad load = sharing.TakeLoad(0);
      EXPECT_LE(load.latency_sum / static_cast<int64_t>(load.answered), milliseconds(36))
          << ToString(kind) << ", seed " << seed;
    }
  }
}

}  // namespace slow_clients_test
}  // namespace headgate::capacity
