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

using namespace std::chrono_literals;
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

// A message with these arguments; each value is written with its type.
std::string MessageOf(const std::vector<std::pair<std::string_view, std::string>>& arguments) {
  std::string out;
  const size_t begin = wire::BeginSpopFrame(wire::SpopType::kNotify, 1, 1, out);
  wire::AppendSpopText("check", out);
  out.push_back(static_cast<char>(arguments.size()));
  for (const auto& [name, value] : arguments) {
    wire::AppendSpopText(name, out);
    out += value;
  }
  wire::EndSpopFrame(begin, out);
  return out;
}
std::string TextValue(std::string_view text) {
  std::string out;
  wire::AppendSpopTextValue(text, out);
  return out;
}
std::string NumberValue(char type, uint64_t bits) {
  std::string out(1, type);
  wire::AppendSpopVarint(bits, out);
  return out;
}
const std::string kNull(1, '\0');
const std::string kTrue(1, '\x11');
const std::string kFalse(1, '\x01');
const std::string kIpv4("\x06\xcb\x00\x71\x01", 5);  // 203.0.113.1

std::string OutcomeOf(SpoeRig& rig, const std::string& message) {
  const auto acks = Acks(rig.Say(message));
  return acks.size() == 1 ? acks.front().variables.at("outcome") : "no answer";
}

// All clients of HAProxy would share one limit, that of HAProxy's own address.
TEST(Spoe, TheAddressOfHaproxyIsNeverThatOfItsClient) {
  const auto ask = [](std::optional<std::string> src) {
    SpoeRig rig(
        "trusted_proxies: [10.0.0.0/8]\nforwarding_header: none\nmappings:\n"
        "- descriptors: [{entries: [{key: remote_address, client_address: true}]}]\n",
        {"remote_address: 1/minute"});
    rig.Say(Hello());
    std::vector<std::pair<std::string_view, std::string>> arguments;
    if (src) arguments.emplace_back("src", *src);
    return OutcomeOf(rig, MessageOf(arguments));
  };
  EXPECT_EQ(ask(kIpv4), "allowed");
  EXPECT_EQ(ask(TextValue("203.0.113.1")), "allowed");
  EXPECT_EQ(ask(TextValue("2001:db8::1")), "allowed");
  EXPECT_EQ(ask(std::nullopt), "missing");
  for (const std::string& unreadable : {TextValue("unknown"), TextValue(""), TextValue("1.2.3.4:5"),
                                        kNull, kTrue, std::string("\x02\x05")}) {
    EXPECT_EQ(ask(unreadable), "invalid");
  }
}

TEST(Spoe, AClientDoesNotNameItselfIfThereIsNoSource) {
  SpoeRig rig(
      "trusted_proxies: [10.0.0.0/8]\nmappings:\n"
      "- descriptors: [{entries: [{key: remote_address, client_address: true}]}]\n",
      {"remote_address: 1/minute"});
  rig.Say(Hello());
  EXPECT_EQ(OutcomeOf(rig, MessageOf({{"X-Forwarded-For", TextValue("192.0.2.1")}})), "missing");
}

// HAProxy's `path` is null for both. RFC 9110, 4.2.3 and 7.1; RFC 9112, 3.2.4.
TEST(Spoe, ARequestWithoutAPathIsForTheRootOrForTheServer) {
  SpoeRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n"
      "- {path: /, descriptors: [{entries: [{key: root, value: x}]}]}\n"
      "- {descriptors: [{entries: [{key: server, path: true}]}]}\n",
      {"root: 1/minute", "server: 1/minute"});
  rig.Say(Hello());
  const auto outcome = [&](std::string_view method, std::string_view path) {
    std::string frame;
    const size_t begin = wire::BeginSpopFrame(wire::SpopType::kNotify, 7, 1, frame);
    wire::AppendSpopText("check", frame);
    frame.push_back(2);
    wire::AppendSpopText("method", frame);
    wire::AppendSpopTextValue(method, frame);
    wire::AppendSpopText("path", frame);
    if (path.empty()) {
      frame.push_back('\0');  // null
    } else {
      wire::AppendSpopTextValue(path, frame);
    }
    wire::EndSpopFrame(begin, frame);
    return Acks(rig.Say(frame)).front().variables.at("outcome");
  };
  EXPECT_EQ(outcome("GET", ""), "allowed");
  EXPECT_EQ(outcome("GET", "/"), "denied") << "the same bucket";
  EXPECT_EQ(outcome("OPTIONS", ""), "allowed");
  EXPECT_EQ(outcome("OPTIONS", "*"), "denied");
  EXPECT_EQ(outcome("GET", "*"), "invalid");
}

TEST(Spoe, TextsAsAddressesAreOneClient) {
  SpoeRig rig(
      "trusted_proxies: [10.0.0.0/8]\nforwarding_header: none\nmappings:\n"
      "- descriptors: [{entries: [{key: remote_address, client_address: true}]}]\n",
      {"remote_address: 1/minute"});
  rig.Say(Hello());
  EXPECT_EQ(OutcomeOf(rig, MessageOf({{"src", TextValue("203.0.113.1")}})), "allowed");
  EXPECT_EQ(OutcomeOf(rig, MessageOf({{"src", kIpv4}})), "denied");
  EXPECT_EQ(OutcomeOf(rig, MessageOf({{"src", TextValue("203.0.113.2")}})), "allowed");
}

TEST(Spoe, AnArgumentOfAnyTypeIsAHeader) {
  const auto refused = [](const std::string& value, std::string_view text) {
    SpoeRig rig("trusted_proxies: [10.0.0.0/8]\nmappings:\n- refuse: [{header: x, values: [\"" +
                    std::string(text) + "\"]}]\n",
                {"k: 1/minute"});
    rig.Say(Hello());
    return OutcomeOf(rig, MessageOf({{"src", kIpv4}, {"x", value}}));
  };
  EXPECT_EQ(refused(kTrue, "1"), "refused");
  EXPECT_EQ(refused(kFalse, "0"), "refused");
  EXPECT_EQ(refused(kIpv4, "203.0.113.1"), "refused");
  EXPECT_EQ(refused(std::string("\x02\x05"), "5"), "refused");
  EXPECT_EQ(refused(NumberValue(4, ~uint64_t{0}), "-1"), "refused") << "a signed one";
  EXPECT_EQ(refused(NumberValue(5, ~uint64_t{0}), "18446744073709551615"), "refused");
  EXPECT_EQ(refused(TextValue("a"), "a"), "refused");
  EXPECT_EQ(refused(kNull, "null"), "allowed") << "the request does not have it";
}

TEST(Spoe, TakesFramesOfAMebibyte) {
  EXPECT_THAT(SpoeRig(kMappings, {}).Say(Hello("2.0", 131'068)),
              HasSubstr(std::string("max-frame-size\x03") + [] {
                std::string number;
                wire::AppendSpopVarint(131'068, number);
                return number;
              }()));
  SpoeRig rig(kMappings, {});
  EXPECT_THAT(rig.Say(Hello("2.0", 3'000'000)), HasSubstr(std::string("max-frame-size\x03") + [] {
                std::string number;
                wire::AppendSpopVarint(1'048'576, number);
                return number;
              }()));
  const std::string large(1'000'000, 'a');
  EXPECT_EQ(Acks(rig.Say(NotifyOf{.path = "/", .headers = {{"X-Large", large}}}.Frame(1))).size(),
            1u);
}

// HAProxy does so for a message that does not fit into a frame.
TEST(Spoe, ConnectionsInVainAreSlowedDown) {
  Rig rig;
  std::vector<uint32_t> said;
  rig.context.on_vain = [&](uint32_t frame_bytes) { said.push_back(frame_bytes); };
  const auto greet = [&](SpoeSession& session, const std::string& hello = Hello()) {
    std::string output;
    session.OnBytes(hello, output, auth::kRigStart);
    return output;
  };
  for (int i = 0; i < 11; ++i) {
    SpoeSession vain(rig.context, rig.peer);
    EXPECT_NE(greet(vain), "") << i;
  }
  SpoeSession held(rig.context, rig.peer);
  EXPECT_EQ(greet(held), "");
  EXPECT_THAT(said, ElementsAre(16'380u));
  rig.clock.Advance(9ms);
  std::string output;
  held.OnBytes({}, output, auth::kRigStart);
  EXPECT_EQ(output, "");
  rig.clock.Advance(1ms);
  held.OnBytes({}, output, auth::kRigStart);
  EXPECT_THAT(output, HasSubstr("max-frame-size"));
  output.clear();
  const std::string ask = NotifyOf{}.Frame(1);
  held.OnBytes(ask, output, auth::kRigStart);
  EXPECT_EQ(Acks(output).size(), 1u);
  SpoeSession health_check(rig.context, rig.peer);
  EXPECT_NE(greet(health_check, Hello("2.0", 16'380, true)), "") << "it is never held";
}

TEST(Spoe, ConnectionsThatAskOrCheckTheHealthAreNotInVain) {
  Rig rig;
  for (int i = 0; i < 30; ++i) {
    SpoeSession session(rig.context, rig.peer);
    const std::string bytes =
        i % 2 == 0 ? Hello() + NotifyOf{}.Frame(1) : Hello("2.0", 16'380, true);
    std::string output;
    session.OnBytes(bytes, output, auth::kRigStart);
    EXPECT_NE(output, "") << i;
  }
}

TEST(HelloPace, TenConnectionsInVainAreFreeIn100Milliseconds) {
  HelloPace pace;
  base::BootTime now{1'000'000'000};
  for (int i = 0; i < 10; ++i) pace.OnVain(now);
  EXPECT_FALSE(pace.Holds(now));
  pace.OnVain(now);
  EXPECT_TRUE(pace.Holds(now));
  EXPECT_FALSE(pace.Holds(now + 10ms));
  for (int i = 0; i < 10'000; ++i) pace.OnVain(now);
  EXPECT_TRUE(pace.Holds(now + 99ms));
  EXPECT_FALSE(pace.Holds(now + 100ms)) << "however many there were";
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
  const auto unavailable = static_cast<size_t>(gate::RequestOutcome::kUnavailable);
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
  std::vector<std::string> said;
  rig.context.on_refused = [&](wire::SpopStatus, std::string_view why) { said.emplace_back(why); };
  rig.Say(Hello());
  const std::string one = NotifyOf{}.Frame(1);
  constexpr size_t kHeadBytes = wire::kSpopLengthBytes + 7;  // type, flags and two short ids
  std::string two = one + one.substr(kHeadBytes);
  wire::EndSpopFrame(0, two);
  std::string broken = two.substr(0, two.size() - 1);
  wire::EndSpopFrame(0, broken);
  EXPECT_THAT(rig.Say(two), HasSubstr("one message only"));
  EXPECT_TRUE(rig.progress.close);
  EXPECT_THAT(said, ElementsAre("an event may have one message only"));
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
