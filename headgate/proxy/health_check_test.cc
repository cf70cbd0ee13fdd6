#include "headgate/proxy/health_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace health_check_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A connection whose exchange the test answers.
struct PlayedConnection final : UpstreamConnection {
  explicit PlayedConnection(PlayedUpstream& to) : upstream(to) {}
  ~PlayedConnection() override { EXPECT_TRUE(closed); }
  http::ClientSession& session() override { return upstream; }
  bool may_begin() const override { return true; }
  bool speaks_http2() const override { return false; }
  void Close(base::Instant) override { closed = true; }
  PlayedUpstream& upstream;
  bool closed = false;
};

struct HealthCheckTest : ::testing::Test {
  void Wait(base::Duration d) {
    now += d;
    wheel.Advance(now);
  }
  void Answer(int status) {
    upstream.receiver->OnHead({.status = status}, now);
    Wait(TickWheel::kTick);
  }

  base::Instant now = kStart;
  TickWheel wheel{kStart};
  HealthCheckOptions options{.path = "/healthz"};
  PlayedUpstream upstream;
  int connects = 0;
  UpstreamConnection::Owner* owner = nullptr;
  Connect connect = [this](size_t address, UpstreamConnection::Owner& to) {
    EXPECT_EQ(address, 7u);
    ++connects;
    owner = &to;
    return std::make_unique<PlayedConnection>(upstream);
  };
  std::vector<bool> results;
  std::optional<HealthCheck> check{
      std::in_place, options, size_t{7},
      connect,       wheel,   [this](bool passed) { results.push_back(passed); },
      kStart};
};

TEST_F(HealthCheckTest, AsksAtIntervals) {
  Wait(TickWheel::kTick);
  EXPECT_EQ(connects, 1);
  owner->OnConnected(now);
  EXPECT_THAT(upstream.TakeGot(), ElementsAre("GET /healthz", "end"));
  Answer(200);
  EXPECT_THAT(results, ElementsAre(true));
  EXPECT_THAT(upstream.TakeGot(), ElementsAre("cancel")) << "the body is not wanted";
  Wait(options.interval - seconds(1));
  EXPECT_EQ(connects, 1);
  Wait(seconds(1));
  EXPECT_EQ(connects, 2);
}

TEST_F(HealthCheckTest, StatusDecides) {
  for (const auto& [status, passes] :
       {std::pair(204, true), {302, true}, {400, false}, {503, false}}) {
    results.clear();
    Wait(options.interval);
    owner->OnConnected(now);
    Answer(status);
    EXPECT_THAT(results, ElementsAre(passes)) << status;
  }
}

TEST_F(HealthCheckTest, UpstreamThatCannotBeReachedFails) {
  Wait(TickWheel::kTick);
  owner->OnClosed(UpstreamConnection::End::kNotConnected, "refused", now);
  EXPECT_THAT(results, ElementsAre(false));
  Wait(TickWheel::kTick);
  EXPECT_THAT(results, ElementsAre(false));
}

TEST_F(HealthCheckTest, AnswerThatFailsOrIsLateFails) {
  Wait(TickWheel::kTick);
  owner->OnConnected(now);
  std::exchange(upstream.receiver, nullptr)->OnFailed(http::Failure::kInvalid, "", now);
  EXPECT_THAT(results, ElementsAre(false));
  Wait(options.interval);
  Wait(options.interval);
  owner->OnConnected(now);
  Wait(options.timeout + TickWheel::kTick);
  EXPECT_THAT(results, ElementsAre(false, false));
  EXPECT_EQ(upstream.TakeGot().back(), "cancel");
}

TEST_F(HealthCheckTest, CheckThatIsDestroyedEndsItsConnection) {
  Wait(TickWheel::kTick);
  owner->OnConnected(now);
  check.reset();
  EXPECT_EQ(upstream.TakeGot().back(), "cancel");
  Wait(2 * options.interval);
  EXPECT_THAT(results, IsEmpty());
}

}  // namespace health_check_test
}  // namespace headgate::proxy
