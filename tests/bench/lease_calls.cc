// Measures the cost of a call for a Redis server on a key with leases of many nodes, some of which
// have ended and are remembered, as reported by the server (INFO commandstats). Starts its own
// redis-server; HEADGATE_REDIS_SERVER selects another one.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>

#include "headgate/base/check.h"
#include "headgate/store/redis/bucket_call.h"
#include "tests/redis/redis_server.h"

namespace headgate::redis_host {
namespace {

using algorithm::Algorithm;
using store::LeaseAsk;
using store::LeaseReport;
using store::Operation;
using store::SharedAnswer;
using store::SharedRequest;
using store::redis::BucketCall;
using store::redis::CallContext;
using namespace std::chrono_literals;

constexpr int kRounds = 3;
constexpr int kCalls = 10'000;
constexpr base::Duration kTtl = 1h;  // so that none expires during the run

class Bench {
 public:
  Bench() {
    for (const store::redis::Script& script : store::redis::AllScripts()) {
      HEADGATE_CHECK(server_.Run({"SCRIPT", "LOAD", script.text}).text == script.sha1);
    }
  }

  void Run(Algorithm algorithm, uint64_t leases, uint64_t ended) {
    server_.Run({"FLUSHALL"});
    limit_ = *limits_.Intern(*algorithm::Limit::Make(
        {.algorithm = algorithm, .requests = 4'000'000'000, .period = 24h * 365}));
    // Large enough that the token bucket is not full again during the run.
    HEADGATE_CHECK(Ask({.name = "b", .limit = limit_, .cost = 1'000'000}).decision.allowed);
    for (uint64_t node = 1; node <= ended; ++node)
      HEADGATE_CHECK(Lease(node, 1'000'000'000, 1ns).grant.granted == 1);
    for (uint64_t node = 1; node <= leases; ++node)
      HEADGATE_CHECK(Lease(node, 1).grant.granted == 1);
    if (ended > 0) HEADGATE_CHECK(StoredBytes() > 32 * (leases + ended));
    const double exact = BestMicros(
        [&](int) { HEADGATE_CHECK(Ask({.name = "b", .limit = limit_}).decision.allowed); });
    uint64_t number = 1;
    const double renewed = BestMicros([&](int i) {
      // Each node in turn returns its lease and asks for the next one.
      const uint64_t node = 1 + static_cast<uint64_t>(i) % leases;
      if (node == 1) ++number;
      HEADGATE_CHECK(Lease(node, number).grant.granted == 1);
    });
    if (ended > 0) HEADGATE_CHECK(StoredBytes() > 32 * (leases + ended));
    fmt::print("| {} | {} | {} | {:.1f} | {:.1f} |\n", Name(algorithm), leases, ended, exact,
               renewed);
  }

 private:
  SharedAnswer Ask(const SharedRequest& request) {
    const CallContext context{.lease_ttl_most = kTtl};
    BucketCall call(request, context);
    while (true) {
      std::string bytes;
      call.AppendCommand(BucketCall::Form::kDigest, bytes);
      if (auto answer = call.Read(server_.Exchange(bytes, 1)[0])) {
        HEADGATE_CHECK(answer->status.ok());
        return *answer;
      }
    }
  }

  uint64_t StoredBytes() { return static_cast<uint64_t>(server_.Run({"STRLEN", "b"}).integer); }

  SharedAnswer Lease(uint64_t node, uint64_t number, base::Duration ttl = kTtl) {
    const LeaseReport report{.number = number - 1, .spent = 1, .returned = true};
    return Ask({.name = "b",
                .limit = limit_,
                .lease = LeaseAsk{.id = {.node = node << 16, .number = number},
                                  .want = 1,
                                  .brief = 1,
                                  .ttl = ttl,
                                  .reports = std::span(&report, 1)}});
  }

  // Takes the fastest of several rounds: only the server's own work bounds it from below.
  template <typename Call>
  double BestMicros(const Call& call) {
    double best = 1e9;
    int i = 0;
    for (int round = 0; round < kRounds; ++round) {
      server_.Run({"CONFIG", "RESETSTAT"});
      for (int k = 0; k < kCalls; ++k) call(i++);
      const std::string stats = server_.Run({"INFO", "commandstats"}).text;
      const size_t line = stats.find("cmdstat_evalsha:");
      const std::string_view field = "usec_per_call=";
      const size_t at = stats.find(field, line);
      HEADGATE_CHECK(line != std::string::npos && at != std::string::npos);
      double micros = 0;
      std::from_chars(stats.data() + at + field.size(), stats.data() + stats.size(), micros);
      best = std::min(best, micros);
    }
    return best;
  }

  RedisServer server_;
  store::LimitTable limits_;
  store::LimitHandle limit_;
};

}  // namespace
}  // namespace headgate::redis_host

int main() {
  headgate::redis_host::Bench bench;
  fmt::print(
      "| algorithm | leases | ended | exact decision, µs | lease returned and renewed, µs |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (const auto algorithm :
       {headgate::algorithm::Algorithm::kTokenBucket, headgate::algorithm::Algorithm::kFixedWindow,
        headgate::algorithm::Algorithm::kSlidingWindowCounter}) {
    for (const uint64_t leases : {1u, 8u, 64u, 512u}) bench.Run(algorithm, leases, 0);
    bench.Run(algorithm, 8, headgate::algorithm::kEndedLeasesMax);
  }
}
