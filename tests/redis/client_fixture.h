// For tests: a client on its own event loop, and calls that wait for their answer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/redis/client.h"

namespace headgate::redis_test {

using namespace std::chrono_literals;

struct TestClient {
  explicit TestClient(store::redis::RedisOptions client_options)
      : options(std::move(client_options)) {
    auto made = store::redis::Client::Make(
        loop, options, 1,
        {.on_connection =
             [this](const std::string& server, const absl::Status& state) {
               connections.push_back(server + " " +
                                     (state.ok() ? "up" : std::string(state.message())));
             },
         .on_eviction_policy = [this](const std::string&,
                                      const std::string& policy) { policies.push_back(policy); },
         .on_topology =
             [this](const std::string&, const absl::Status& state) {
               topologies.push_back(state.ok() ? "well" : std::string(state.message()));
             },
         .on_breaker = [this](const std::string&,
                              bool open) { breaker.push_back(open ? "open" : "closed"); },
         .on_learning = [this](const std::string&, store::redis::HistoryChange change,
                               base::Duration) { learning.emplace_back(Name(change)); },
         .on_learned = [this](const std::string&) { learning.emplace_back("over"); },
         .on_alarm = [this](const std::string&,
                            const std::string& error) { alarms.push_back(error); }});
    EXPECT_TRUE(made.ok()) << made.status();
    client = *std::move(made);
  }
  static store::redis::RedisOptions Single(uint16_t port) {
    // Long, because the machine that runs the tests may be busy.
    return {.servers = {{.host = "127.0.0.1", .port = port}}, .timeout = 2s, .connect_timeout = 2s};
  }

  std::string Call(const store::redis::Script& script, std::string_view key,
                   std::vector<std::string_view> arguments = {}, base::Duration timeout = {}) {
    std::optional<std::string> answer;
    client->Call({.script = &script, .key = key, .arguments = arguments}, timeout,
                 [&](const store::redis::PendingCall::Outcome& reply) {
                   answer = Text(reply);
                   last_status = reply.status();
                 });
    EXPECT_TRUE(loop.RunUntil([&] { return answer.has_value(); }, 20s));
    return answer.value_or("no answer");
  }
  // A call that depends on the outstanding leases.
  std::string Learn(std::string_view key) {
    static const store::redis::Script ok = store::redis::MakeScript("ok", "return 'OK'");
    std::optional<std::string> answer;
    client->Call({.script = &ok, .key = key, .learns = true}, {},
                 [&](const store::redis::PendingCall::Outcome& reply) {
                   answer = reply.ok() ? "OK" : Text(reply);
                 });
    EXPECT_TRUE(loop.RunUntil([&] { return answer.has_value(); }, 20s));
    return answer.value_or("no answer");
  }
  // The breaks in the histories of shards so far.
  uint64_t HistoryChanges() const {
    const auto changes = client->ReadCounters().history_changes;
    return std::accumulate(changes.begin(), changes.end(), uint64_t{0});
  }
  uint64_t ReadLearning() const { return client->ReadCounters().shards_learning; }
  static std::string Text(const store::redis::PendingCall::Outcome& answer) {
    return answer.ok() ? (*answer)->ToString()
                       : std::string(absl::StatusCodeToString(answer.status().code()));
  }
  // Runs the loop until the condition holds.
  bool Until(const std::function<bool()>& done, base::Duration timeout = 20s) {
    return loop.RunUntil(done, timeout);
  }
  void Run(base::Duration time) {
    EXPECT_FALSE(loop.RunUntil([] { return false; }, time));
  }

  base::SystemClock clock;
  net::EventLoop loop{clock};
  store::redis::RedisOptions options;
  absl::Status last_status;  // status of the last call
  std::vector<std::string> connections, policies, topologies, breaker, learning, alarms;
  std::unique_ptr<store::redis::Client> client;
};

// INCRBY as a script.
inline const store::redis::Script& AddScript() {
  static const store::redis::Script script =
      store::redis::MakeScript("add", "return redis.call('INCRBY', KEYS[1], ARGV[1])");
  return script;
}

}  // namespace headgate::redis_test
