#include "headgate/proxy/request_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace request_end_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Log = std::vector<std::string>;

class Listener final : public EndListener {
 public:
  explicit Listener(Log& log) : log_(log) {}
  void OnResponseSize(uint64_t bytes, base::Instant) override {
    log_.push_back("size " + std::to_string(bytes));
  }
  void OnProgress(const BodySizes& sizes, base::Instant) override {
    log_.push_back("so far " + std::to_string(sizes.request) + " up, " +
                   std::to_string(sizes.response) + " down");
  }
  void OnEnded(const BodySizes& sizes, base::Instant) override {
    log_.push_back(std::to_string(sizes.request) + " up, " + std::to_string(sizes.response) +
                   " down");
  }

 private:
  Log& log_;
};

RequestEnd EndIn(Log& log) {
  RequestEnd end;
  end.Add(std::make_unique<Listener>(log), kStart);
  return end;
}

TEST(RequestEnd, IsToldOnce) {
  Log log;
  {
    RequestEnd end = EndIn(log);
    RequestEnd moved = std::move(end);
    moved.Tell({.request = 1, .response = 2}, kStart);
    moved.Tell({.request = 3, .response = 4}, kStart);
    EXPECT_THAT(log, ElementsAre("1 up, 2 down"));
  }
  EXPECT_THAT(log, ElementsAre("1 up, 2 down"));
}

TEST(RequestEnd, OfARequestThatIsDroppedIsItsDestruction) {
  Log log;
  { const RequestEnd end = EndIn(log); }
  EXPECT_THAT(log, ElementsAre("0 up, 0 down"));
  RequestEnd replaced = EndIn(log);
  replaced = RequestEnd();
  EXPECT_THAT(log, ElementsAre("0 up, 0 down", "0 up, 0 down"));
}

// ---- A relay tells it, whatever becomes of the exchange

struct RelayEnd : ::testing::Test {
  void Begin() {
    http::RequestHead head{.method = "POST",
                           .target = "/x",
                           .scheme = "http",
                           .authority = "example.com",
                           .body = {.kind = http::BodyLength::Kind::kUnsized}};
    relay = std::make_unique<Relay>(rig.context, std::nullopt, std::move(head), http::Fields(),
                                    rig.client, rig.now);
    relay->SetEnd(EndIn(log));
    relay->Begin(rig.now);
  }
  void SendHead(http::BodyLength::Kind kind = http::BodyLength::Kind::kUnsized,
                uint64_t bytes = 0) {
    rig.Answer(rig.upstream).OnHead({.body = {.kind = kind, .bytes = bytes}}, rig.now);
  }

  RelayRig rig;
  Log log;
  std::unique_ptr<Relay> relay;
};

TEST_F(RelayEnd, WithTheAnswer) {
  Begin();
  relay->OnData("abc", rig.now);
  SendHead(http::BodyLength::Kind::kSized, 5);
  rig.Answer(rig.upstream).OnData("12345", rig.now);
  EXPECT_THAT(log, ElementsAre("size 5"));
  std::exchange(rig.upstream.receiver, nullptr)->OnEnd({}, rig.now);
  EXPECT_THAT(log, ElementsAre("size 5", "3 up, 5 down"));
  // The rest of the request is dropped.
  relay->OnData("def", rig.now);
  relay->OnEnd({}, rig.now);
  relay.reset();
  EXPECT_THAT(log, ElementsAre("size 5", "3 up, 5 down"));
}

TEST_F(RelayEnd, WhenTheClientGoes) {
  Begin();
  relay->OnData("abc", rig.now);
  SendHead();
  rig.client.takes = false;
  rig.Answer(rig.upstream).OnData("12345", rig.now);
  rig.client.unsent = 2;
  relay->OnAbort(rig.now);
  EXPECT_THAT(log, ElementsAre("3 up, 3 down")) << "two bytes were not sent";
  relay.reset();
  EXPECT_EQ(log.size(), 1u);
}

TEST_F(RelayEnd, WhenTheUpstreamFails) {
  Begin();
  rig.Fail(rig.upstream, http::Failure::kInvalid);
  EXPECT_THAT(log, ElementsAre("0 up, 0 down")) << "the answer is the proxy's own";
}

TEST_F(RelayEnd, WhenTheUpstreamBreaksOff) {
  Begin();
  SendHead();
  rig.Answer(rig.upstream).OnData("12345", rig.now);
  rig.Fail(rig.upstream, http::Failure::kTruncated);
  EXPECT_THAT(log, ElementsAre("0 up, 5 down"));
}

TEST_F(RelayEnd, WhenNoPlaceIsThere) {
  rig.free.clear();
  Begin();
  EXPECT_THAT(log, IsEmpty());
  std::exchange(rig.waiting, nullptr)->OnNoPlace(NoPlace::kClosed, "", rig.now);
  EXPECT_THAT(log, ElementsAre("0 up, 0 down"));
}

TEST_F(RelayEnd, LongBodiesTellTheirProgress) {
  Begin();
  SendHead();
  const std::string half(Relay::kProgressBytes / 2, 'x');
  relay->OnData(half, rig.now);
  EXPECT_THAT(log, IsEmpty());
  rig.Answer(rig.upstream).OnData(half, rig.now);
  EXPECT_THAT(log, ElementsAre("so far 524288 up, 524288 down"));
  rig.Answer(rig.upstream).OnData(half, rig.now);
  rig.Answer(rig.upstream).OnData(half, rig.now);
  EXPECT_THAT(log, ElementsAre("so far 524288 up, 524288 down", "so far 524288 up, 1572864 down"));
}

TEST_F(RelayEnd, OnlyAfterTheLastAttempt) {
  Begin();
  rig.Fail(rig.upstream, http::Failure::kNotSent);
  EXPECT_THAT(log, IsEmpty()) << "another one is made";
  rig.Answer(rig.other).OnHead({}, rig.now);
  EXPECT_THAT(log, IsEmpty());
  relay.reset();
  EXPECT_THAT(log, ElementsAre("0 up, 0 down"));
}

}  // namespace request_end_test
}  // namespace headgate::proxy
