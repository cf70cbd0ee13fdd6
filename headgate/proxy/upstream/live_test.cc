// Names whose lookups are answered by the tests.
#include "headgate/proxy/upstream/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "headgate/net/socket_address.h"

namespace headgate::proxy::upstream {
namespace live_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct LiveUpstreamsTest : ::testing::Test {
  void Begin(const std::string& text) {
    options.resolve = 1ms;
    options.list = *ParseList(text);
    live.emplace(
        options,
        [this](const net::StreamTarget& name, net::NameLookup::Done done) {
          under_way[name.host] = std::move(done);
          ++begun;
          return std::shared_ptr<void>(nullptr,
                                       [this, host = name.host](void*) { gone.push_back(host); });
        },
        loop, disciplined, log,
        [this](const std::vector<Address>& to, const std::shared_ptr<net::TlsContext>&) {
          ++published;
          addresses.clear();
          for (const Address& address : to) addresses.push_back(address.target.ToString());
        });
    live->Begin();
  }
  // Runs the loop until another lookup has begun.
  bool Asked(uint64_t count) {
    return loop.RunUntil([&] { return begun >= count; }, 10s);
  }
  void Answer(const std::string& name, const absl::StatusOr<net::SocketAddresses>& answer) {
    const auto done = std::move(under_way.extract(name).mapped());
    done(answer);
  }
  static net::SocketAddresses Hosts(const std::vector<std::string>& hosts) {
    net::SocketAddresses addresses;
    for (const std::string& host : hosts) addresses.push_back(net::Ipv4Socket(host.c_str(), 9000));
    return addresses;
  }

  base::SystemClock clock;
  base::DisciplinedClock disciplined{clock};
  net::EventLoop loop{clock};
  std::ostringstream written;
  observe::Log log{{}, clock, std::make_shared<spdlog::sinks::ostream_sink_mt>(written, true)};
  LiveOptions options;
  std::map<std::string, net::NameLookup::Done> under_way;
  std::vector<std::string> gone;
  uint64_t begun = 0;
  int published = 0;
  std::vector<std::string> addresses;
  std::optional<Live> live;
};

TEST_F(LiveUpstreamsTest, FollowTheAnswers) {
  Begin("http://app:9000");
  EXPECT_EQ(begun, 1u);
  Answer("app", Hosts({"10.0.0.7", "10.0.0.8"}));
  EXPECT_THAT(addresses, ElementsAre("10.0.0.7:9000", "10.0.0.8:9000"));
  ASSERT_TRUE(Asked(2));
  Answer("app", Hosts({"10.0.0.8", "10.0.0.7"}));
  EXPECT_EQ(published, 1) << "nothing has changed";
  ASSERT_TRUE(Asked(3));
  Answer("app", Hosts({"10.0.0.8", "10.0.0.9"}));
  EXPECT_EQ(published, 2);
  EXPECT_THAT(addresses, ElementsAre("10.0.0.8:9000", "10.0.0.9:9000"));
  EXPECT_THAT(gone, ElementsAre("app", "app", "app"));
  ASSERT_EQ(live->names().size(), 1u);
  EXPECT_EQ(live->names()[0].addresses.size(), 2u);
}

TEST_F(LiveUpstreamsTest, AFailureIsLoggedOnceAndChangesNothing) {
  Begin("http://app:9000");
  Answer("app", Hosts({"10.0.0.7"}));
  for (uint64_t i = 2; i <= 4; ++i) {
    ASSERT_TRUE(Asked(i));
    Answer("app", absl::UnavailableError("Name or service not known"));
  }
  EXPECT_EQ(published, 1);
  const std::string lines = written.str();
  const size_t first = lines.find("upstream.lookup_failed");
  ASSERT_NE(first, lines.npos) << lines;
  EXPECT_EQ(lines.find("upstream.lookup_failed", first + 1), lines.npos) << lines;
  EXPECT_THAT(lines, AllOf(HasSubstr("Name or service not known"), HasSubstr("app:9000"),
                           HasSubstr("the last answer"), Not(HasSubstr("recovered"))));
  ASSERT_TRUE(Asked(5));
  Answer("app", Hosts({"10.0.0.7"}));
  EXPECT_THAT(written.str(), HasSubstr("upstream.lookup_recovered"));
}

TEST_F(LiveUpstreamsTest, AChangeOfTheListIsPublishedAtOnceAndLookedUp) {
  Begin("http://app:9000");
  live->Set(*ParseList("http://b:9000,10.0.0.1:9000"));
  EXPECT_THAT(addresses, ElementsAre("b:9000", "10.0.0.1:9000"));
  ASSERT_TRUE(Asked(2));
  EXPECT_THAT(gone, ElementsAre("app")) << "nobody awaits its answer";
  Answer("b", Hosts({"10.0.0.1", "10.0.0.2"}));
  EXPECT_THAT(addresses, ElementsAre("10.0.0.1:9000", "10.0.0.2:9000"));
}

// The next process knows the addresses although no name server answers.
TEST_F(LiveUpstreamsTest, AddressesAreHandedOver) {
  Begin("http://app:9000,10.0.0.1:9000");
  Answer("app", Hosts({"10.0.0.7", "10.0.0.8"}));
  const std::vector<handover::NamedAddress> known = live->HandOver();
  EXPECT_THAT(known, ElementsAre(handover::NamedAddress{"app:9000", "10.0.0.7:9000"},
                                 handover::NamedAddress{"app:9000", "10.0.0.8:9000"}));
  live.reset();
  Begin("http://app:9000,b:9000");
  Answer("app", absl::UnavailableError("no server"));
  live->TakeOver(known);
  EXPECT_THAT(addresses, ElementsAre("10.0.0.7:9000", "10.0.0.8:9000", "b:9000"));
}

// The other process may be of another version, or be mistaken.
TEST_F(LiveUpstreamsTest, WhatIsNoAddressOfTheNameIsNotTakenOver) {
  Begin("http://app:9000");
  live->TakeOver({{"app:9000", "10.0.0.7:9001"},
                  {"app:9000", "other:9000"},
                  {"app:9000", "unix:/run/s"},
                  {"app:9000", ":9000"},
                  {"app:9000", "localhost:9000"},
                  {"app:9000", ""},
                  {"b:9000", "10.0.0.8:9000"}});
  EXPECT_THAT(addresses, ElementsAre("app:9000"));
}

TEST_F(LiveUpstreamsTest, AddressesAreNeverLookedUp) {
  Begin("http://127.0.0.1:9000,localhost:9000,unix:/run/s");
  EXPECT_EQ(begun, 0u);
  EXPECT_THAT(live->names(), IsEmpty());
  EXPECT_EQ(live->addresses().size(), 3u);
}

TEST_F(LiveUpstreamsTest, TooManyAddressesAreLoggedOnce) {
  Begin("http://app:9000");
  std::vector<std::string> hosts;
  for (int i = 0; i < 300; ++i)
    hosts.push_back("10.0." + std::to_string(i / 100) + "." + std::to_string(i % 100));
  Answer("app", Hosts(hosts));
  EXPECT_EQ(addresses.size(), 256u);
  ASSERT_TRUE(Asked(2));
  hosts.erase(hosts.begin());
  Answer("app", Hosts(hosts));
  EXPECT_EQ(published, 2);
  const std::string lines = written.str();
  const size_t first = lines.find("upstream.addresses_left_out");
  ASSERT_NE(first, lines.npos) << lines;
  EXPECT_EQ(lines.find("upstream.addresses_left_out", first + 1), lines.npos) << lines;
}

// The lookup that the sidecar uses.
TEST_F(LiveUpstreamsTest, TheSystemKnowsNames) {
  std::optional<absl::StatusOr<net::SocketAddresses>> answer;
  // A label of a host name is never empty, so no name server is asked.
  const auto lookup = Live::SystemsLookUp(loop)(
      {.host = "a..b", .port = 1},
      [&](const absl::StatusOr<net::SocketAddresses>& heard) { answer = heard; });
  ASSERT_TRUE(loop.RunUntil([&] { return answer.has_value(); }, 10s));
  EXPECT_FALSE(answer->ok());
}

}  // namespace live_test
}  // namespace headgate::proxy::upstream
