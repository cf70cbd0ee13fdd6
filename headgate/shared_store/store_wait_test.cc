#include "headgate/shared_store/store_wait.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"

namespace headgate::shared_store {
namespace store_wait_test {

using namespace std::chrono_literals;

// Answers what the test says, at once or later.
struct Store final : store::cas::VersionedStore {
  void Get(std::string_view name, base::BootTime /*deadline*/, GetDone done) override {
    names.insert(std::string(name));
    answer(std::string(name), std::move(done));
  }
  void Put(const store::cas::PutRequest& /*request*/, PutDone /*done*/) override {
    ADD_FAILURE() << "nothing is written";
  }

  std::set<std::string> names;
  std::function<void(const std::string& name, GetDone done)> answer =
      [](const std::string& /*name*/, const GetDone& done) { done(std::nullopt); };
};

struct StoreWaitTest : ::testing::Test {
  absl::Status Await(base::Duration timeout) {
    const std::vector<LoopOfStore> loops = {{first_loop, first}, {second_loop, second}};
    return AwaitStore(loops, timeout);
  }

  base::SystemClock clock;
  net::EventLoop first_loop{clock};
  net::EventLoop second_loop{clock};
  Store first;
  Store second;
};

TEST_F(StoreWaitTest, AsksForSeveralKeysOnEachLoop) {
  EXPECT_TRUE(Await(100s).ok());
  EXPECT_GE(first.names.size(), 10u);
  EXPECT_EQ(second.names, first.names);
}

TEST_F(StoreWaitTest, WaitsUntilItAnswersOnAllLoops) {
  int failures = 0;
  second.answer = [&](const std::string& /*name*/, const auto& done) {
    if (failures == 100) return done(std::nullopt);
    ++failures;
    done(absl::UnavailableError("not connected"));
  };
  EXPECT_TRUE(Await(100s).ok());
  EXPECT_EQ(failures, 100);
}

TEST_F(StoreWaitTest, RunsTheLoopsMeanwhile) {
  first.answer = [&](const std::string& /*name*/, auto done) {
    first_loop.Post([done = std::move(done)] { done(std::nullopt); });
  };
  bool connected = false;
  net::Timer connects(second_loop, [&] { connected = true; });
  connects.SetAfter(20ms);
  second.answer = [&](const std::string& /*name*/, const auto& done) {
    if (connected) return done(std::nullopt);
    done(absl::UnavailableError("not connected"));
  };
  EXPECT_TRUE(Await(100s).ok());
}

TEST_F(StoreWaitTest, ALoopThatWaitsForTheOthersGoesOn) {
  bool beat = false;
  net::Timer beats(first_loop, [&] { beat = true; });
  beats.SetAfter(50ms);
  second.answer = [&](const std::string& /*name*/, const auto& done) {
    if (beat) return done(std::nullopt);
    done(absl::UnavailableError("not connected"));
  };
  EXPECT_TRUE(Await(100s).ok());
}

TEST_F(StoreWaitTest, OneServerOfSeveralThatIsAwayIsWaitedFor) {
  std::string lost;
  first.answer = [&](const std::string& name, const auto& done) {
    if (lost.empty()) lost = name;
    if (name != lost) return done(std::nullopt);
    done(absl::DeadlineExceededError("server 2 has not answered in time"));
  };
  EXPECT_EQ(Await(1ms), absl::DeadlineExceededError("server 2 has not answered in time"));
}

TEST_F(StoreWaitTest, ARefusalIsAnAnswer) {
  first.answer = [](const std::string& /*name*/, const auto& done) {
    done(absl::PermissionDeniedError("NOPERM"));
  };
  EXPECT_TRUE(Await(100s).ok());
}

TEST_F(StoreWaitTest, AnswersThatComeAfterTheWaitDoNothing) {
  std::vector<store::cas::VersionedStore::GetDone> late;
  first.answer = [&](const std::string& /*name*/, auto done) { late.push_back(std::move(done)); };
  EXPECT_TRUE(absl::IsUnavailable(Await(1ms)));
  ASSERT_FALSE(late.empty());
  for (const auto& done : late) done(std::nullopt);
}

}  // namespace store_wait_test
}  // namespace headgate::shared_store
