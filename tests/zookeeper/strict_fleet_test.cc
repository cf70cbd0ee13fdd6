// Several instances with strict buckets in a real ZooKeeper, through its faults: they admit what
// one bucket admits, and their answers are those of one bucket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "headgate/store/zookeeper/zookeeper_backend.h"
#include "tests/linearizability/history_checker.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::LimitSpec;
using linearizability::Operation;
using store::SharedAnswer;

// Whether the request may have been done although it failed.
bool MayHaveBeenDone(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

// Instances with a session each, on one event loop.
class Fleet {
 public:
  Fleet(const std::string& servers, size_t count, base::Duration timeout = 2s) {
    for (size_t i = 0; i < count; ++i) {
      auto instance = store::zookeeper::OpenBackend(
          {.url = "zk://" + servers + "/r",
           .calls = {.timeout = timeout, .breaker = {.open_min = 50ms, .open_max = 200ms}}},
          loops_,
          {.limits = limits,
           .clock = decisions,
           .instance = "instance-" + std::to_string(i),
           .version = "1",
           .seed = i + 1,
           .listener_of = [this](uint32_t /*loop*/) {
             return store::StoreListener{
                 .on_connection = [this](const std::string& /*server*/, const absl::Status& state) {
                   state.ok() ? ++connected : ++disconnected;
                 }};
           }});
      instances.push_back(*std::move(instance));
    }
    EXPECT_TRUE(Until([&] { return connected == count; }));
  }

  bool Until(const std::function<bool()>& done, base::Duration timeout = 30s) {
    return loop.RunUntil(done, timeout);
  }
  store::LimitHandle Limit(const LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }
  SharedAnswer Ask(size_t instance, const store::SharedRequest& request) {
    std::optional<SharedAnswer> answer;
    instances[instance]->store(0).Ask(request, [&](const SharedAnswer& given) { answer = given; });
    EXPECT_TRUE(Until([&] { return answer.has_value(); }));
    return answer.value_or(SharedAnswer{});
  }

  base::SystemClock clock;
  base::DisciplinedClock decisions{clock};
  net::EventLoop loop{clock};
  store::LimitTable limits;
  std::vector<std::unique_ptr<store::Backend>> instances;
  size_t connected = 0;
  size_t disconnected = 0;

 private:
  net::EventLoop* const loops_[1] = {&loop};
};

// Asks from all instances, some at a time, and records the history.
class Load {
 public:
  static constexpr LimitSpec kSpec{
      .algorithm = Algorithm::kTokenBucket, .requests = 300, .period = std::chrono::hours(10'000)};

  explicit Load(Fleet& fleet)
      : fleet_(fleet), limit_(fleet.Limit(kSpec)), at_(fleet.decisions.Now()) {
    for (size_t i = 0; i < 2 * fleet.instances.size(); ++i) {
      clients_.push_back(std::make_unique<net::Timer>(fleet.loop, [this, i] { Ask(i); }));
      clients_.back()->SetAfter(0ms);
    }
  }

  // The answers that were not failures.
  size_t answered() const { return answered_; }
  size_t failed() const { return history_.size() - answered_; }
  bool Until(size_t answers) {
    return fleet_.Until([&] { return answered_ >= answers; });
  }
  void Stop() {
    stopped_ = true;
    EXPECT_TRUE(fleet_.Until([&] { return open_ == 0; }));
  }
  // To be called at the end.
  void Check() {
    Stop();
    std::vector<Operation> history;
    uint64_t admitted = 0, given_back = 0;
    for (const Entry& entry : history_) {
      if (!entry.operation.answer && !MayHaveBeenDone(entry.status)) continue;
      history.push_back(entry.operation);
      admitted += entry.operation.operation == store::Operation::kTake && entry.operation.answer &&
                  entry.operation.answer->allowed;
      given_back += entry.operation.operation == store::Operation::kRefund;
    }
    EXPECT_LE(admitted, kSpec.requests + given_back);
    EXPECT_GT(admitted, kSpec.requests) << "the premise";
    EXPECT_EQ(linearizability::Check(*algorithm::Limit::Make(kSpec), at_, history), "");
  }

 private:
  struct Entry {
    Operation operation{};
    absl::Status status{};
  };

  void Ask(size_t client) {
    if (stopped_) return;
    const size_t index = history_.size();
    history_.push_back({});
    Operation& operation = history_.back().operation;
    // Some peeks, and refunds that make room again.
    if (index % 7 == 3) operation.operation = store::Operation::kPeek;
    if (index % 7 == 5) operation.operation = store::Operation::kRefund;
    operation.called = fleet_.loop.Now().ns;
    ++open_;
    fleet_.instances[client % fleet_.instances.size()]->store(0).Ask(
        {.name = "hg:{k}",
         .limit = limit_,
         .cost = operation.cost,
         .operation = operation.operation},
        [this, client, index](const SharedAnswer& answer) {
          --open_;
          Entry& entry = history_[index];
          entry.status = answer.status;
          if (answer.status.ok()) {
            entry.operation.returned = fleet_.loop.Now().ns;
            entry.operation.answer = {{answer.decision.allowed, answer.decision.remaining}};
            ++answered_;
          }
          clients_[client]->SetAfter(answer.status.ok() ? 1ms : 10ms);
        });
  }

  Fleet& fleet_;
  const store::LimitHandle limit_;
  const base::Instant at_;
  std::vector<std::unique_ptr<net::Timer>> clients_;
  std::vector<Entry> history_;
  size_t answered_ = 0;
  size_t open_ = 0;
  bool stopped_ = false;
};

TEST(StrictFleet, AdmitsWhatOneBucketAdmits) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kFixedWindow, Algorithm::kSlidingWindowLog}) {
    const store::LimitHandle limit = fleet.Limit(
        {.algorithm = algorithm, .requests = 10, .period = std::chrono::hours(24 * 365)});
    int allowed = 0, answered = 0;
    for (size_t i = 0; i < 60; ++i) {
      fleet.instances[i % 3]->store(0).Ask(
          {.name = std::string("hg:{") + std::string(algorithm::Name(algorithm)) + "}",
           .limit = limit},
          [&](const SharedAnswer& answer) {
            EXPECT_TRUE(answer.status.ok()) << answer.status;
            allowed += answer.decision.allowed;
            ++answered;
          });
    }
    ASSERT_TRUE(fleet.Until([&] { return answered == 60; }));
    EXPECT_EQ(allowed, 10) << algorithm::Name(algorithm);
  }
}

TEST(StrictFleet, GoesOnWithWhatWasConsumedAfterARestartOfTheServer) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 2; ++i) {
    const size_t failed = load.failed();
    server.Kill();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 10; }));
    server.Start();
    ASSERT_TRUE(load.Until(load.answered() + 200));
  }
  load.Check();
}

TEST(StrictFleet, AServerThatWasSilentForAMomentIsUsedAgain) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3, 200ms);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  for (int i = 0; i < 3; ++i) {
    const size_t failed = load.failed();
    server.Freeze();
    ASSERT_TRUE(fleet.Until([&] { return load.failed() > failed + 5; }));
    server.Thaw();
    ASSERT_TRUE(load.Until(load.answered() + 100));
  }
  load.Check();
}

TEST(StrictFleet, LosesNothingWithTheLeaderOfAnEnsemble) {
  Ensemble ensemble;
  Fleet fleet(ensemble.servers(), 3);
  Load load(fleet);
  ASSERT_TRUE(load.Until(200));
  // One of them is the leader.
  for (size_t i = 0; i < ensemble.size(); ++i) {
    ensemble.server(i).Kill();
    ASSERT_TRUE(load.Until(load.answered() + 100));
    ensemble.server(i).Begin();
    ASSERT_TRUE(fleet.Until([&] { return ensemble.server(i).IsServing(); }));
  }
  load.Check();
}

TEST(StrictFleet, CountsItsInstancesAndLeaves) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 3);
  ASSERT_TRUE(fleet.Until([&] { return fleet.instances[0]->instances() == 3; }));
  bool left = false;
  fleet.instances[2]->Leave([&] { left = true; });
  ASSERT_TRUE(fleet.Until([&] { return left; }));
  EXPECT_TRUE(fleet.Until([&] { return fleet.instances[0]->store(0).instances() == 2; }));
  EXPECT_TRUE(absl::IsUnavailable(
      fleet.Ask(2, {.name = "hg:{k}", .limit = fleet.Limit({.requests = 1, .period = 1s})})
          .status));
}

TEST(StrictFleet, CountsItsCalls) {
  ZooKeeperProcess server;
  Fleet fleet(server.server(), 1);
  const store::LimitHandle limit = fleet.Limit({.requests = 5, .period = std::chrono::hours(1)});
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(fleet.Ask(0, {.name = "hg:{k}", .limit = limit}).decision.allowed, i < 5);
  store::StoreCounters counters = fleet.instances[0]->counters();
  // A read, five writes, and a read for each denial.
  EXPECT_EQ(counters.calls_answered, 8u);
  EXPECT_EQ(counters.disconnects, 0u);
  server.Kill();
  ASSERT_TRUE(fleet.Until([&] { return fleet.disconnected == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(fleet.Ask(0, {.name = "hg:{k}", .limit = limit}).status));
  counters = fleet.instances[0]->counters();
  EXPECT_EQ(counters.calls_unavailable, 1u);
  EXPECT_EQ(counters.disconnects, 1u);
}

}  // namespace
}  // namespace headgate::zookeeper_test
