#include "headgate/store/cas/cas_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "headgate/store/cas/versioned_store_rig.h"

namespace headgate::store::cas {
namespace cas_store_test {

using namespace std::chrono_literals;

// A service that all loops reach, each from its own thread. It answers in a later turn, and while
// it is held, not at all.
class SharedService {
 public:
  class Connection final : public VersionedStore {
   public:
    Connection(SharedService& service, net::EventLoop& loop) : service_(service), loop_(loop) {}

    void Get(std::string_view name, base::BootTime /*deadline*/, GetDone done) override {
      const std::lock_guard<std::mutex> lock(service_.mutex_);
      ++service_.gets;
      service_.Answer([this, name = std::string(name), done = std::move(done)] {
        std::optional<Versioned> found;
        const auto value = service_.rig_.values.find(name);
        if (value != service_.rig_.values.end()) found = value->second;
        loop_.Post([done, found] { done(found); });
      });
    }
    void Put(const PutRequest& request, PutDone done) override {
      const std::lock_guard<std::mutex> lock(service_.mutex_);
      ++service_.puts;
      const auto version = service_.rig_.Apply(std::string(request.name),
                                               std::string(*request.bytes), request.expected);
      service_.Answer([this, version, done = std::move(done)] {
        loop_.Post([done, version] { done(version); });
      });
    }

   private:
    SharedService& service_;
    net::EventLoop& loop_;
  };

  void Hold() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_held_ = true;
  }
  void Release() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_held_ = false;
    for (const auto& answer : std::exchange(held_, {})) answer();
  }

  std::atomic<uint64_t> gets{0}, puts{0};

 private:
  void Answer(std::function<void()> answer) {
    if (!is_held_) return answer();
    held_.push_back(std::move(answer));
  }

  std::mutex mutex_;
  // Guarded by mutex_.
  bool is_held_ = false;
  std::vector<std::function<void()>> held_;
  base::ManualClock clock_;
  ServiceRig rig_{clock_};
};

// A process with three loops.
class Process {
 public:
  explicit Process(SharedService& service, uint64_t seed = 1) {
    std::vector<CasStore::Parts> parts;
    for (int i = 0; i < kLoops; ++i) {
      loops_.push_back(std::make_unique<net::EventLoop>(clock_));
      connections_.push_back(std::make_unique<SharedService::Connection>(service, *loops_.back()));
      parts.push_back({.loop = *loops_.back(), .service = *connections_.back()});
    }
    stores_ = CasStore::Make(parts, {.limits = limits, .clock = decisions_, .seed = seed});
    for (auto& loop : loops_) threads_.emplace_back([&loop] { loop->Run(); });
  }
  ~Process() {
    for (auto& loop : loops_) loop->Stop();
    for (auto& thread : threads_) thread.join();
  }

  // Calls `work` on each loop's thread, with the store of that loop.
  void OnEachLoop(const std::function<void(CasStore& store)>& work) {
    for (size_t i = 0; i < loops_.size(); ++i)
      loops_[i]->Post([work, store = stores_[i].get()] { work(*store); });
  }
  uint64_t Counted(base::Counter CasCounters::*counter) const {
    uint64_t sum = 0;
    for (const auto& store : stores_) sum += (store->counters().*counter).value();
    return sum;
  }
  const std::vector<std::unique_ptr<CasStore>>& stores() const { return stores_; }

  static constexpr int kLoops = 3;
  LimitTable limits;

 private:
  base::SystemClock clock_;
  base::DisciplinedClock decisions_{clock_};
  std::vector<std::unique_ptr<net::EventLoop>> loops_;
  std::vector<std::unique_ptr<SharedService::Connection>> connections_;
  std::vector<std::unique_ptr<CasStore>> stores_;
  std::vector<std::thread> threads_;
};

// Waits on a loop of the test's own.
bool Until(const std::function<bool()>& done) {
  base::SystemClock clock;
  net::EventLoop loop(clock);
  net::Timer tick(loop, [] {});
  for (int i = 0; i < 5'000 && !done(); ++i) loop.RunUntil([] { return false; }, 1ms);
  return done();
}

TEST(CasStore, AllLoopsOfAProcessTravelTogether) {
  SharedService service;
  Process process(service);
  const LimitHandle limit =
      *process.limits.Intern(*algorithm::Limit::Make({.requests = 1'000, .period = 1h}));
  std::atomic<int> admitted{0}, answered{0}, elsewhere{0};
  service.Hold();
  process.OnEachLoop([&](CasStore& store) {
    const auto asked_on = std::this_thread::get_id();
    for (int i = 0; i < 500; ++i) {
      store.Ask({.name = "hot", .limit = limit, .timeout = 5s},
                [&, asked_on](const SharedAnswer& answer) {
                  admitted += answer.status.ok() && answer.decision.allowed;
                  elsewhere += asked_on != std::this_thread::get_id();
                  ++answered;
                });
    }
  });
  ASSERT_TRUE(Until([&] { return process.Counted(&CasCounters::requests) == 1'500; }));
  EXPECT_EQ(answered, 0);
  service.Release();
  ASSERT_TRUE(Until([&] { return answered == 1'500; }));
  EXPECT_EQ(admitted, 1'000);
  EXPECT_EQ(elsewhere, 0) << "answers come to the loop that asked";
  EXPECT_EQ(process.Counted(&CasCounters::conflicts), 0u)
      << "a process does not compete with itself";
  // One round for the first requests, and one for all that came during it.
  EXPECT_LE(process.Counted(&CasCounters::rounds), 2u);
  EXPECT_LE(service.gets + service.puts, 3u);
}

TEST(CasStore, ProcessesShareBuckets) {
  SharedService service;
  Process first(service, 1);
  Process second(service, 2);
  std::atomic<int> admitted{0}, answered{0};
  for (Process* process : {&first, &second}) {
    const LimitHandle limit =
        *process->limits.Intern(*algorithm::Limit::Make({.requests = 100, .period = 1h}));
    process->OnEachLoop([&, limit](CasStore& store) {
      for (int i = 0; i < 90; ++i) {
        store.Ask(
            {.name = std::string(1, static_cast<char>('a' + i % 3)), .limit = limit, .timeout = 5s},
            [&](const SharedAnswer& answer) {
              admitted += answer.status.ok() && answer.decision.allowed;
              ++answered;
            });
      }
    });
  }
  ASSERT_TRUE(Until([&] { return answered == 540; }));
  EXPECT_EQ(admitted, 300);
}

TEST(CasStore, ASilentServiceIsGivenUpInTime) {
  SharedService service;
  service.Hold();
  Process process(service);
  const LimitHandle limit =
      *process.limits.Intern(*algorithm::Limit::Make({.requests = 1, .period = 1h}));
  std::atomic<int> unavailable{0};
  process.OnEachLoop([&](CasStore& store) {
    store.Ask({.name = "k", .limit = limit, .timeout = 20ms}, [&](const SharedAnswer& answer) {
      unavailable += absl::IsUnavailable(answer.status);
    });
  });
  EXPECT_TRUE(Until([&] { return unavailable == Process::kLoops; }));
  EXPECT_EQ(process.Counted(&CasCounters::timed_out), 3u);
}

TEST(CasStore, SomeRequestsNeedNoService) {
  SharedService service;
  Process process(service);
  std::atomic<int> answered{0};
  const LimitHandle nothing =
      *process.limits.Intern(*algorithm::Limit::Make({.requests = 0, .period = 1h}));
  process.OnEachLoop([&](CasStore& store) {
    bool now = false;
    store.Ask({.name = "k", .limit = nothing},
              [&](const SharedAnswer& answer) { now = answer.decision.never_fits(); });
    answered += now;
  });
  EXPECT_TRUE(Until([&] { return answered == Process::kLoops; }));
  EXPECT_EQ(service.gets, 0u);
}

}  // namespace cas_store_test
}  // namespace headgate::store::cas
