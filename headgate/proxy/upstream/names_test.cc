#include "headgate/proxy/upstream/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headgate/net/socket_address.h"

namespace headgate::proxy::upstream {
namespace names_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct UpstreamNamesTest : ::testing::Test {
  void Follow(const std::string& text) {
    auto list = ParseList(text);
    ASSERT_TRUE(list.ok()) << list.status();
    names.Follow(*std::move(list), now);
  }
  // The answer to a lookup of this name, with its port.
  Names::Heard Answer(const std::string& name, const std::vector<std::string>& hosts,
                      uint16_t port = 9000) {
    net::SocketAddresses addresses;
    for (const std::string& host : hosts) {
      addresses.push_back(host.find(':') == std::string::npos
                              ? net::Ipv4Socket(host.c_str(), port)
                              : net::Ipv6Socket(host.c_str(), port));
    }
    return names.OnAnswer({.host = name, .port = port}, addresses, now);
  }
  Names::Heard Fail(const std::string& name) {
    return names.OnAnswer({.host = name, .port = 9000}, absl::UnavailableError("no server"), now);
  }
  std::vector<std::string> Due() {
    std::vector<std::string> due;
    for (const net::StreamTarget& name : names.TakeDue(now)) due.push_back(name.ToString());
    return due;
  }
  // "address" or "address NAME NUMBER" for each that gets requests.
  std::vector<std::string> All() const {
    std::vector<std::string> all;
    for (const Address& address : names.Expand().all) {
      std::string& text = all.emplace_back(address.target.ToString());
      if (!address.tls_name.empty()) text += " " + address.tls_name;
      if (address.name != 0) text += " " + std::to_string(address.name);
    }
    return all;
  }

  base::Instant now = base::Instant::FromNanos(1'000'000'000'000);
  Names names{seconds(5), ""};
};

TEST_F(UpstreamNamesTest, OnlyNamesAreLookedUp) {
  Follow("http://127.0.0.1:9000,[::1]:9000,unix:/run/s,localhost:9000,app:9000,b:9000");
  EXPECT_THAT(Due(), ElementsAre("app:9000", "b:9000"));
  EXPECT_THAT(All(), ElementsAre("127.0.0.1:9000", "[::1]:9000", "unix:/run/s", "localhost:9000",
                                 "app:9000", "b:9000"));
  EXPECT_EQ(names.next_due(), std::nullopt) << "both are in progress";
}

TEST_F(UpstreamNamesTest, EachAddressIsAnUpstream) {
  Follow("http://10.0.0.1:9000,app:9000");
  EXPECT_EQ(Answer("app", {"10.0.0.7", "fd00::7"}).added, 2u);
  EXPECT_THAT(All(), ElementsAre("10.0.0.1:9000", "10.0.0.7:9000 2", "[fd00::7]:9000 2"));
}

TEST_F(UpstreamNamesTest, TheNextLookupIsAnIntervalAfterTheAnswer) {
  Follow("http://app:9000");
  EXPECT_THAT(Due(), ElementsAre("app:9000"));
  EXPECT_THAT(Due(), IsEmpty()) << "it is in progress";
  now += seconds(20);
  Answer("app", {"10.0.0.7"});
  EXPECT_EQ(names.next_due(), now + seconds(5));
  now += seconds(5) - milliseconds(1);
  EXPECT_THAT(Due(), IsEmpty());
  now += milliseconds(1);
  EXPECT_THAT(Due(), ElementsAre("app:9000"));
  Fail("app");
  EXPECT_EQ(names.next_due(), now + seconds(5));
}

// The service is not reachable, so the sidecar should not wait long.
TEST_F(UpstreamNamesTest, ANameWithoutAnyAnswerIsLookedUpSooner) {
  Follow("http://app:9000");
  EXPECT_EQ(Fail("app").count, 0u);
  EXPECT_EQ(names.next_due(), now + seconds(1));
  EXPECT_THAT(All(), ElementsAre("app:9000")) << "it stands for itself";
}

TEST_F(UpstreamNamesTest, TheOrderOfAnAnswerDoesNotMatter) {
  Follow("http://app:9000");
  Answer("app", {"10.0.0.7", "10.0.0.8", "10.0.0.9"});
  const auto before = names.Expand().all;
  EXPECT_FALSE(Answer("app", {"10.0.0.9", "10.0.0.7", "10.0.0.8"}).changed());
  EXPECT_EQ(names.Expand().all, before);
  const auto heard = Answer("app", {"10.0.0.6", "10.0.0.9", "10.0.0.7"});
  EXPECT_EQ(heard.added, 1u);
  EXPECT_EQ(heard.removed, 1u);
  EXPECT_EQ(heard.count, 3u);
  EXPECT_THAT(All(), ElementsAre("10.0.0.7:9000 1", "10.0.0.9:9000 1", "10.0.0.6:9000 1"));
}

TEST_F(UpstreamNamesTest, TheLastAddressesStayIfALookupFails) {
  Follow("http://app:9000");
  Answer("app", {"10.0.0.7", "10.0.0.8"});
  const base::Instant answered = now;
  const auto before = All();
  now += seconds(5);
  EXPECT_EQ(Fail("app").failures, 1u);
  EXPECT_EQ(Answer("app", {}).failures, 2u) << "an empty answer is a failure, too";
  EXPECT_EQ(All(), before);
  EXPECT_EQ(names.states()[0].answered, answered);
  const auto heard = Answer("app", {"10.0.0.8", "10.0.0.7"});
  EXPECT_TRUE(heard.recovered);
  EXPECT_FALSE(heard.changed());
  EXPECT_FALSE(Answer("app", {"10.0.0.8", "10.0.0.7"}).recovered);
  EXPECT_EQ(Fail("app").failures, 1u);
}

TEST_F(UpstreamNamesTest, AnAddressThatAppearsTwiceIsOneUpstream) {
  Follow("http://10.0.0.7:9000,[FD00:0:0::7]:9000,app:9000,b:9000");
  Answer("app", {"10.0.0.7", "10.0.0.8", "10.0.0.8", "fd00::7"});
  Answer("b", {"10.0.0.8", "10.0.0.9"});
  EXPECT_THAT(All(),
              ElementsAre("10.0.0.7:9000", "[fd00::7]:9000", "10.0.0.8:9000 3", "10.0.0.9:9000 4"));
}

TEST_F(UpstreamNamesTest, AnotherPortIsAnotherUpstream) {
  Follow("http://app:9000,app:9001");
  EXPECT_THAT(Due(), ElementsAre("app:9000", "app:9001"));
  Answer("app", {"10.0.0.7"}, 9000);
  Answer("app", {"10.0.0.7"}, 9001);
  EXPECT_THAT(All(), ElementsAre("10.0.0.7:9000 1", "10.0.0.7:9001 2"));
}

// The certificate of each is checked against the name that was listed.
TEST_F(UpstreamNamesTest, WithTlsEachNameHasItsCertificate) {
  Follow("https://app:9000,b:9000,10.0.0.1:9000");
  EXPECT_THAT(All(), ElementsAre("app:9000 app", "b:9000 b", "10.0.0.1:9000 10.0.0.1"));
  Answer("app", {"10.0.0.7"});
  Answer("b", {"10.0.0.7", "10.0.0.8"});
  EXPECT_THAT(All(), ElementsAre("10.0.0.7:9000 app 1", "10.0.0.7:9000 b 2", "10.0.0.8:9000 b 2",
                                 "10.0.0.1:9000 10.0.0.1"));
}

TEST_F(UpstreamNamesTest, OneNameForAllCertificatesMakesOneUpstreamOfEachAddress) {
  Names named(seconds(5), "orders.internal");
  named.Follow(*ParseList("https://app:9000,b:9000"), now);
  for (const auto* host : {"app", "b"}) {
    named.OnAnswer({.host = host, .port = 9000},
                   net::SocketAddresses{net::Ipv4Socket("10.0.0.7", 9000)}, now);
  }
  const auto all = named.Expand().all;
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].tls_name, "orders.internal");
}

TEST_F(UpstreamNamesTest, AChangeOfTheListKeepsWhatIsKnown) {
  Follow("http://app:9000,b:9000");
  (void)Due();
  Answer("app", {"10.0.0.7"});
  Answer("b", {"10.0.0.8"});
  Follow("http://c:9000,b:9000");
  EXPECT_THAT(All(), ElementsAre("c:9000", "10.0.0.8:9000 2"));
  EXPECT_THAT(Due(), ElementsAre("c:9000"));
  EXPECT_FALSE(names.Follows({.host = "app", .port = 9000}));
  EXPECT_FALSE(Answer("app", {"10.0.0.9"}).changed()) << "a late answer";
  EXPECT_THAT(All(), ElementsAre("c:9000", "10.0.0.8:9000 2"));
}

TEST_F(UpstreamNamesTest, AddressesOfAnotherProcessHoldUntilThereIsAnAnswer) {
  const net::StreamTarget app{.host = "app", .port = 9000};
  const net::StreamTarget before{.host = "10.0.0.7", .port = 9000};
  Follow("http://app:9000");
  names.TakeOver(app, {before});
  names.TakeOver({.host = "b", .port = 9000}, {before});
  EXPECT_THAT(All(), ElementsAre("10.0.0.7:9000 1"));
  EXPECT_EQ(Fail("app").count, 1u);
  EXPECT_THAT(All(), ElementsAre("10.0.0.7:9000 1"));
  const auto heard = Answer("app", {"10.0.0.8"});
  EXPECT_EQ(heard.added, 1u);
  EXPECT_EQ(heard.removed, 1u);
  names.TakeOver(app, {before});
  EXPECT_THAT(All(), ElementsAre("10.0.0.8:9000 1")) << "the answer is newer";
}

// Beyond the bound, the addresses that are known stay, whatever the order of the answer.
TEST_F(UpstreamNamesTest, ThereIsABoundOfAllAddresses) {
  Follow("http://10.1.0.1:9000,app:9000");
  std::vector<std::string> hosts;
  for (int i = 0; i < 300; ++i)
    hosts.push_back("10.0." + std::to_string(i / 100) + "." + std::to_string(i % 100));
  Answer("app", hosts);
  const auto before = names.Expand();
  EXPECT_EQ(before.all.size(), Names::kAddressesMax);
  EXPECT_EQ(before.left_out, 301 - Names::kAddressesMax);
  std::reverse(hosts.begin(), hosts.end());
  EXPECT_FALSE(Answer("app", hosts).changed());
  EXPECT_EQ(names.Expand().all, before.all);
  hosts.pop_back();  // removes an address in use
  const auto heard = Answer("app", hosts);
  EXPECT_EQ(heard.removed, 1u);
  EXPECT_EQ(heard.added, 1u);
  EXPECT_EQ(names.Expand().all.size(), Names::kAddressesMax);
  EXPECT_EQ(names.Expand().left_out, 300 - Names::kAddressesMax);
}

}  // namespace names_test
}  // namespace headgate::proxy::upstream
