// For tests: several instances with strict buckets in a real store. They admit what one bucket
// admits, and their answers are those of one bucket.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headgate/net/event_loop.h"
#include "headgate/store/backend.h"
#include "headgate/store/backend_options.h"
#include "tests/linearizability/history_checker.h"

namespace headgate::strict_test {

using namespace std::chrono_literals;
using algorithm::Algorithm;
using algorithm::LimitSpec;
using linearizability::Operation;
using store::SharedAnswer;

// Whether the request may have been done although it failed.
inline bool MayHaveBeenDone(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

// Instances of a strict store, on one event loop. `open` is the adapter's OpenBackend.
class Fleet {
 public:
  using Open = absl::StatusOr<std::unique_ptr<store::Backend>>(
      const store::BackendOptions& options, std::span<net::EventLoop* const> loops,
      const store::BackendContext& context);

  Fleet(Open& open, store::BackendOptions options, size_t count) {
    options.calls.breaker = {.open_min = 50ms, .open_max = 200ms};
    for (size_t i = 0; i < count; ++i) {
      auto instance =
          open(options, std::span<net::EventLoop* const>(&loops_[0], 1),
               {.limits = limits,
                .clock = decisions,
                .instance = "instance" + std::to_string(i),
                .version = "1",
                .seed = i + 1,
                .listener_of = [this](uint32_t /*loop*/) {
                  return store::StoreListener{.on_connection = [this](const std::string& /*server*/,
                                                                      const absl::Status& state) {
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

  // `locked`: the requests ask for the lock of the key.
  explicit Load(Fleet& fleet, bool locked = false)
      : fleet_(fleet), locked_(locked), limit_(fleet.Limit(kSpec)), at_(fleet.decisions.Now()) {
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
         .operation = operation.operation,
         .locked = locked_},
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
  const bool locked_;
  const store::LimitHandle limit_;
  const base::Instant at_;
  std::vector<std::unique_ptr<net::Timer>> clients_;
  std::vector<Entry> history_;
  size_t answered_ = 0;
  size_t open_ = 0;
  bool stopped_ = false;
};

}  // namespace headgate::strict_test
