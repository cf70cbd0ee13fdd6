#include "headgate/front/spoe/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/front/auth/auth_rig.h"
#include "headgate/front/spoe/spoe_rig.h"

namespace headgate::front::spoe {
namespace session_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kMappings = R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-original
mappings:
- path: /api/*
  descriptors:
  - entries: [{key: api_key, header: X-API-Key}]
- descriptors:
  - entries: [{key: remote_address, client_address: true}]
)";

struct Rig : SpoeRig {
  Rig() : SpoeRig(kMappings, {"api_key: 2/minute", "remote_address: 1/minute"}) {}
};

std::string Status(const std::vector<Ack>& acks) {
  std::string text;
  for (const Ack& ack : acks)
    text += std::to_string(ack.stream_id) + ":" + ack.variables.at("status") + " ";
  return text;
}

TEST(Spoe, GreetsWithItsVersionAndTheSizeOfFrames) {
  Rig rig;
  const std::string hello = rig.Say(Hello());
  EXPECT_THAT(hello, HasSubstr(std::string("version\x08\x03") + "2.0"));
  EXPECT_THAT(hello, HasSubstr("capabilities\x08\x0apipelining"));
  EXPECT_FALSE(rig.progress.close);
}

TEST(Spoe, AHealthCheckEndsAfterTheHello) {
  Rig rig;
  rig.Say(Hello("2.0", 16'380, true));
  EXPECT_TRUE(rig.progress.close);
  EXPECT_FALSE(rig.progress.protocol_error);
}

TEST(Spoe, AnswersEachNotifyWithVariables) {
  Rig rig;
  rig.Say(Hello());
  const NotifyOf request{.path = "/api/x", .headers = {{"X-API-Key", "k1"}}};
  EXPECT_EQ(Status(Acks(rig.Say(request.Frame(7) + request.Frame(8) + request.Frame(9)))),
            "7:200 8:200 9:429 ");
  const std::vector<Ack> denied = Acks(rig.Say(request.Frame(10)));
  ASSERT_EQ(denied.size(), 1u);
  const std::map<std::string, std::string>& variables = denied.front().variables;
  EXPECT_EQ(variables.at("outcome"), "denied");
  EXPECT_EQ(variables.at("retry_after"), "30");
  EXPECT_EQ(variables.at("ratelimit"), "\"api_key\";r=0;t=30");
  EXPECT_EQ(variables.at("ratelimit_policy"), "\"api_key\";q=2;w=60");
  EXPECT_EQ(variables.at("x_ratelimit_limit"), "2");
}

TEST(Spoe, TheSourceAddressIsTheClient) {
  Rig rig;
  rig.Say(Hello());
  const auto ask = [&](std::string_view source, std::vector<mapping::HeaderField> headers) {
    return Status(Acks(
        rig.Say(NotifyOf{.source = source, .path = "/", .headers = std::move(headers)}.Frame(1))));
  };
  EXPECT_EQ(ask("203.0.113.1", {}), "1:200 ");
  EXPECT_EQ(ask("203.0.113.1", {{"X-Forwarded-For", "203.0.113.2"}}), "1:429 ");
  EXPECT_EQ(ask("203.0.113.3", {}), "1:200 ");
  EXPECT_EQ(ask("2001:db8::1", {}), "1:200 ");
  EXPECT_EQ(ask("2001:db8::2", {}), "1:429 ") << "the same /64";
}

TEST(Spoe, AnyCutOfTheBytesGivesTheSameAnswers) {
  const std::string bytes = [] {
    std::string text = Hello();
    for (uint64_t i = 1; i <= 4; ++i)
      text += NotifyOf{.path = "/api/x", .headers = {{"X-API-Key", "k1"}}}.Frame(i);
    return text;
  }();
  Rig whole;
  const std::string expected = whole.Say(bytes);
  for (size_t piece = 1; piece < 40; ++piece) {
    Rig rig;
    std::string output;
    for (size_t at = 0; at < bytes.size(); at += piece) output += rig.Say(bytes.substr(at, piece));
    EXPECT_EQ(output, expected) << piece;
  }
}

TEST(Spoe, RefusesWhatItDoesNotUnderstand) {
  const auto verdict = [](const std::string& bytes, bool greet = true) {
    Rig rig;
    if (greet) rig.Say(Hello());
    const std::string answer = rig.Say(bytes);
    EXPECT_TRUE(rig.progress.close);
    EXPECT_TRUE(rig.progress.protocol_error);
    return answer;
  };
  EXPECT_THAT(verdict(Hello("1.0")), HasSubstr("not expected"));
  EXPECT_THAT(verdict(Hello("1.0"), false), HasSubstr("version 2.0 is needed"));
  EXPECT_THAT(verdict(Hello("2.0", 100), false), HasSubstr("too small"));
  EXPECT_THAT(verdict(NotifyOf{}.Frame(1), false), HasSubstr("not expected"));
  EXPECT_THAT(verdict(std::string("\xff\xff\xff\xff", 4)), HasSubstr("too big"));
  EXPECT_THAT(verdict(std::string("\x00\x00\x00\x02\x03\x00", 6)), HasSubstr("malformed"));
  std::string fragment = NotifyOf{}.Frame(1);
  fragment[8] = '\0';  // the flag of a complete frame
  EXPECT_THAT(verdict(fragment), HasSubstr("fragments"));
  std::string broken = NotifyOf{}.Frame(1);
  broken.back() = '\x0f';
  EXPECT_THAT(verdict(broken), HasSubstr("malformed"));
}

TEST(Spoe, SaysGoodbyeWhenHaproxyDoesAndWhenItGoesDown) {
  Rig rig;
  rig.Say(Hello());
  std::string goodbye;
  wire::EndSpopFrame(wire::BeginSpopFrame(wire::SpopType::kHaproxyDisconnect, 0, 0, goodbye),
                     goodbye);
  EXPECT_THAT(rig.Say(goodbye), HasSubstr("status-code"));
  EXPECT_TRUE(rig.progress.close);
  EXPECT_FALSE(rig.progress.protocol_error);

  Rig draining;
  draining.Say(Hello());
  draining.session.OnDrain();
  EXPECT_THAT(draining.Say(""), HasSubstr("going down"));
  EXPECT_TRUE(draining.progress.close);
}

// {"alg":"HS256"}, {"sub":"mallory"}
constexpr std::string_view kMallory = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYWxsb3J5In0.AA";

TEST(Spoe, AMessageBeyondThoseThatWaitIsUnavailable) {
  SpoeRig rig(kMappings, {"remote_address: 1/second burst 2000 queue"});
  rig.Say(Hello());
  std::string first;
  for (uint64_t i = 0; i <= 1024; ++i) first += NotifyOf{}.Frame(i);
  EXPECT_EQ(Status(Acks(rig.Say(first))), "0:200 ") << "the others wait for their turn";
  EXPECT_EQ(Status(Acks(rig.Say(NotifyOf{}.Frame(1025)))), "1025:503 ");
  const auto unavailable = static_cast<size_t>(auth::Outcome::kUnavailable);
  EXPECT_EQ(rig.counters.outcomes[unavailable].value(), 1u);
}

struct DeniedAck {
  size_t frame_bytes = 0;  // without the length
  std::map<std::string, std::string> variables;
  std::vector<uint32_t> reports;
};

// The denial by a rule of this name, with frames of this size.
DeniedAck Denial(const std::string& name, uint32_t frame_bytes) {
  const std::string mappings =
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n- descriptors:\n"
      "  - entries: [{key: " +
      name + ", client_address: true}]\n";
  SpoeRig rig(mappings, {name + ": 1/minute"});
  DeniedAck denied;
  rig.context.on_left_out = [&](uint32_t bytes) { denied.reports.push_back(bytes); };
  rig.Say(Hello("2.0", frame_bytes));
  rig.Say(NotifyOf{}.Frame(1));
  const std::string ack = rig.Say(NotifyOf{}.Frame(2));
  denied.frame_bytes = ack.size() - wire::kSpopLengthBytes;
  denied.variables = Acks(ack).at(0).variables;
  return denied;
}

TEST(Spoe, NoAckIsLongerThanTheFramesThatHaproxyTakes) {
  for (const size_t name_bytes : {1u, 30u, 41u, 60u, 200u}) {
    for (const uint32_t frame_bytes : {256u, 300u, 512u, 16'380u}) {
      const DeniedAck denied = Denial(std::string(name_bytes, 'k'), frame_bytes);
      EXPECT_LE(denied.frame_bytes, frame_bytes) << name_bytes;
      EXPECT_EQ(denied.variables.at("status"), "429");
      EXPECT_EQ(denied.variables.at("outcome"), "denied");
      EXPECT_EQ(denied.variables.at("retry_after"), "60");
      EXPECT_EQ(denied.variables.at("x_ratelimit_remaining"), "0");
    }
  }
}

TEST(Spoe, LeavesOutTheLongestFieldsAndSaysSoOnce) {
  const DeniedAck fits = Denial(std::string(30, 'k'), 256);
  EXPECT_EQ(fits.variables.count("ratelimit_policy"), 1u);
  EXPECT_THAT(fits.reports, IsEmpty());
  const DeniedAck longer = Denial(std::string(41, 'k'), 256);
  EXPECT_EQ(longer.variables.count("ratelimit_policy"), 0u);
  EXPECT_EQ(longer.variables.count("ratelimit"), 1u);
  EXPECT_THAT(longer.reports, ElementsAre(256u));
  EXPECT_EQ(Denial(std::string(41, 'k'), 300).variables.count("ratelimit_policy"), 1u);
  EXPECT_EQ(Denial(std::string(200, 'k'), 256).variables.count("ratelimit"), 0u);
}

TEST(Spoe, SaysWhySeveralMessagesOfOneEventAreRefused) {
  Rig rig;
  int said = 0;
  rig.context.on_several_messages = [&] { ++said; };
  rig.Say(Hello());
  const std::string one = NotifyOf{}.Frame(1);
  constexpr size_t kHeadBytes = wire::kSpopLengthBytes + 7;  // type, flags and two short ids
  std::string two = one + one.substr(kHeadBytes);
  wire::EndSpopFrame(0, two);
  std::string broken = two.substr(0, two.size() - 1);
  wire::EndSpopFrame(0, broken);
  EXPECT_THAT(rig.Say(two), HasSubstr("one message only"));
  EXPECT_TRUE(rig.progress.close);
  EXPECT_EQ(said, 1);
  SpoeSession next(rig.context, rig.peer);
  std::string output;
  const std::string bytes = Hello() + broken;
  next.OnBytes(bytes, output, auth::kRigStart);
  EXPECT_THAT(output, HasSubstr("malformed"));
}

TEST(Spoe, ATokenThatComesTwiceIsInvalid) {
  SpoeRig rig(R"(
trusted_proxies: [10.0.0.0/8]
jwt:
- {unverified: true}
mappings:
- refuse: [{claim: sub, values: [mallory]}]
)",
              {});
  rig.Say(Hello());
  const NotifyOf once{.headers = {{"authorization", kMallory}}};
  const NotifyOf twice{.headers = {{"authorization", kMallory}, {"authorization", kMallory}}};
  EXPECT_EQ(Status(Acks(rig.Say(once.Frame(1) + twice.Frame(2)))), "1:403 2:400 ");
}

}  // namespace session_test
}  // namespace headgate::front::spoe
