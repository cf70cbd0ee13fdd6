#include "headgate/share/client_series.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "headgate/share/share_pool.h"

namespace headgate::share {
namespace client_series_test {

using base::Instant;
using std::chrono::seconds;

constexpr size_t kSeries = 4;

// A pool, and what monitoring knows about its counters.
class Watched {
 public:
  explicit Watched(uint32_t leave_after = 0) {
    ShareOptions options;
    options.pool.capacity = 100'000;
    options.pool.cycle = seconds(10);
    options.pool.leave_after_cycles = leave_after;
    pool = *SharePool::Make(options);
  }

  void Send(const std::string& client, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) pool->Admit(client, 1, now);
  }
  void EndCycle() { now += seconds(10); }

  // The values of `allowed`, by client; "" is the rest.
  std::map<std::string, uint64_t> Look() {
    pool->TakeSnapshot(now, snapshot_);
    const uint64_t total = snapshot_.counts.allowed;
    std::set<std::string> members = {""};
    for (const ClientSnapshot& client : snapshot_.clients) members.insert(client.name);
    series_.Follow(snapshot_);
    EXPECT_LE(snapshot_.clients.size(), kSeries);
    std::map<std::string, uint64_t> values = {{"", snapshot_.others.counts.allowed}};
    for (const ClientSnapshot& client : snapshot_.clients)
      values[client.name] = client.figures.counts.allowed;
    EXPECT_GE(values.at(""), rest_);
    rest_ = values.at("");
    // As Prometheus reads counters: a value that is smaller has begun at 0. Those of clients that
    // have left the pool have ended.
    for (auto& [name, known] : known_) {
      const auto value = values.find(name);
      const bool is_smaller = value != values.end() && value->second < known.first;
      if (is_smaller || !members.contains(name)) known.second += std::exchange(known.first, 0);
    }
    uint64_t sum = 0;
    for (const auto& [name, value] : values) known_[name].first = value;
    for (const auto& [name, known] : known_) sum += known.first + known.second;
    EXPECT_EQ(sum, total);
    return values;
  }

  std::unique_ptr<SharePool> pool;
  Instant now = Instant{} + seconds(1);

 private:
  ClientSeries series_{kSeries};
  PoolSnapshot snapshot_;
  uint64_t rest_ = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> known_;  // last value, and those before
};

TEST(ClientSeries, RequestsOfClientsThatFitCountUnderTheirNames) {
  Watched watched;
  watched.Send("ann", 2);
  EXPECT_EQ(watched.Look(), (std::map<std::string, uint64_t>{{"", 0}, {"ann", 2}}));
  watched.Send("ann", 1);
  watched.Send("bob", 5);
  EXPECT_EQ(watched.Look(), (std::map<std::string, uint64_t>{{"", 0}, {"ann", 3}, {"bob", 5}}));
}

TEST(ClientSeries, TheRestDoesNotGoBackWhenClientsChangePlaces) {
  Watched watched;
  const auto send = [&watched](uint64_t of_first, uint64_t of_second) {
    for (char client = 'a'; client < 'i'; ++client)
      watched.Send(std::string(1, client), client < 'e' ? of_first : of_second);
    watched.EndCycle();
    return watched.Look();
  };
  using Values = std::map<std::string, uint64_t>;
  EXPECT_EQ(send(8, 1), (Values{{"", 4}, {"a", 8}, {"b", 8}, {"c", 8}, {"d", 8}}));
  // The requests of a cycle whose end changes the places count in the rest.
  EXPECT_EQ(send(1, 3), (Values{{"", 20}, {"e", 0}, {"f", 0}, {"g", 0}, {"h", 0}}));
  EXPECT_EQ(send(1, 3), (Values{{"", 24}, {"e", 3}, {"f", 3}, {"g", 3}, {"h", 3}}));
  EXPECT_EQ(send(3, 1), (Values{{"", 40}, {"a", 8}, {"b", 8}, {"c", 8}, {"d", 8}}))
      << "series go on if their clients are back";
}

TEST(ClientSeries, AClientThatLeavesThePoolAndComesBackBeginsAnew) {
  Watched watched(/*leave_after=*/2);
  watched.Send("ann", 7);
  watched.Look();
  watched.Send("ann", 1);  // nobody looks before it leaves
  for (int cycle = 0; cycle < 4; ++cycle) {
    watched.Send("bob", 1);
    watched.EndCycle();
  }
  EXPECT_EQ(watched.Look(), (std::map<std::string, uint64_t>{{"", 1}, {"bob", 4}}));
  watched.Send("ann", 2);
  EXPECT_EQ(watched.Look(), (std::map<std::string, uint64_t>{{"", 1}, {"ann", 2}, {"bob", 4}}));
}

TEST(ClientSeries, WhateverClientsDoNoRequestIsLostOrCountedTwice) {
  std::mt19937 random(7);
  Watched watched(/*leave_after=*/3);
  for (int step = 0; step < 20'000; ++step) {
    // A few clients are active for a while, then others.
    const auto client = (static_cast<unsigned>(step) / 500 + random() % 7) % 30;
    watched.Send(std::to_string(client), random() % 4);
    if (random() % 20 == 0) watched.EndCycle();
    if (random() % 15 == 0) watched.Look();
    if (HasFailure()) return;
  }
}

TEST(ClientSeries, APoolThatLeavesOutAClientForATimeCountsNothingTwice) {
  ClientSeries series(kSeries);
  const auto look = [&series](uint64_t total, std::map<std::string, uint64_t> clients) {
    PoolSnapshot snapshot;
    snapshot.counts.rejected = total;
    for (const auto& [name, count] : clients)
      snapshot.clients.push_back({.name = name, .figures = {.counts = {.rejected = count}}});
    series.Follow(snapshot);
    uint64_t sum = snapshot.others.counts.rejected;
    for (const ClientSnapshot& client : snapshot.clients) sum += client.figures.counts.rejected;
    return std::pair(sum, snapshot.others.counts.rejected);
  };
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(look(5, {{"ann", 5}}), (Pair{5, 0}));
  EXPECT_EQ(look(6, {}), (Pair{1, 1})) << "the series of ann has ended";
  EXPECT_EQ(look(8, {{"ann", 8}}), (Pair{3, 3})) << "only 2 of 8 are new";
  EXPECT_EQ(look(9, {{"ann", 9}}), (Pair{4, 3}));
}

}  // namespace client_series_test
}  // namespace headgate::share
