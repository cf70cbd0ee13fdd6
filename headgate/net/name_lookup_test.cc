#include "headgate/net/name_lookup.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "headgate/base/clock.h"
#include "headgate/net/kept_answers.h"

namespace headgate::net {
namespace name_lookup_test {

// The name servers take as long as the test wants to answer this name.
constexpr std::string_view kSlowName = "slow.test";
std::atomic<bool> slow_may_answer{false};
std::atomic<int> slow_asked{0};
std::atomic<int> slow_answered{0};

}  // namespace name_lookup_test
}  // namespace headgate::net

// Replaces the system's in this program.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** results) {
  using namespace headgate::net::name_lookup_test;
  const bool is_slow = name == kSlowName && (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (is_slow) {
    ++slow_asked;
    while (!slow_may_answer) std::this_thread::yield();
    name = "127.0.0.1";
  }
  const auto system = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const int result = system(name, service, hints, results);
  if (is_slow) ++slow_answered;
  return result;
}

namespace headgate::net {
namespace name_lookup_test {

using namespace std::chrono_literals;

// A label of a host name is never empty, so no name server is asked.
constexpr const char* kNoName = "a..b";

bool IsLoopback(const SocketAddress& address, uint16_t port) {
  if (address.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127 && ntohs(v4.sin_port) == port;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) && ntohs(v6.sin6_port) == port;
}

struct NameLookupTest : ::testing::Test {
  NameLookup::Done Keep() {
    return [this](const absl::StatusOr<SocketAddresses>& addresses) {
      ++answers;
      answer = addresses;
    };
  }
  bool Until(int count) {
    return loop.RunUntil([&] { return answers >= count; }, 10s);
  }

  base::SystemClock clock;
  EventLoop loop{clock};
  int answers = 0;
  absl::StatusOr<SocketAddresses> answer;
};

TEST_F(NameLookupTest, FindsTheAddressesOfAName) {
  const NameLookup lookup(loop, "localhost", 6379, Keep());
  EXPECT_EQ(answers, 0) << "never from within the constructor";
  ASSERT_TRUE(Until(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_FALSE(answer->empty());
  for (const SocketAddress& address : *answer) EXPECT_TRUE(IsLoopback(address, 6379));
}

TEST_F(NameLookupTest, SaysWhyThereIsNone) {
  const NameLookup lookup(loop, kNoName, 6379, Keep());
  ASSERT_TRUE(Until(1));
  EXPECT_TRUE(absl::IsUnavailable(answer.status()));
  EXPECT_FALSE(answer.status().message().empty());
}

TEST_F(NameLookupTest, AnswersAllWhoAskForOneName) {
  std::vector<std::unique_ptr<NameLookup>> lookups;
  for (int i = 0; i < 20; ++i)
    lookups.push_back(std::make_unique<NameLookup>(loop, "localhost", 1, Keep()));
  EXPECT_TRUE(Until(20));
  EXPECT_EQ(answers, 20);
}

TEST_F(NameLookupTest, IsSilentOnceItIsGone) {
  auto gone = std::make_unique<NameLookup>(loop, kNoName, 1, Keep());
  gone.reset();
  const NameLookup other(loop, "localhost", 1, Keep());
  ASSERT_TRUE(Until(1));
  EXPECT_FALSE(loop.RunUntil([&] { return answers > 1; }, 20ms));
  EXPECT_TRUE(answer.ok());
}

// The answer has been posted to the loop, but not run.
TEST_F(NameLookupTest, IsSilentIfItGoesAfterItsAnswer) {
  std::optional<NameLookup> gone;
  const NameLookup first(loop, "localhost", 1, [&](const auto&) { gone.reset(); });
  gone.emplace(loop, "localhost", 1, Keep());
  EXPECT_FALSE(loop.RunUntil([&] { return answers > 0; }, 200ms));
}

TEST_F(NameLookupTest, MayGoInItsOwnAnswer) {
  std::unique_ptr<NameLookup> lookup;
  lookup = std::make_unique<NameLookup>(loop, kNoName, 1, [&](const auto&) {
    lookup.reset();
    ++answers;
  });
  EXPECT_TRUE(Until(1));
}

TEST_F(NameLookupTest, ALoopMayEndBeforeTheAnswer) {
  for (int i = 0; i < 50; ++i) {
    EventLoop short_lived(clock);
    const NameLookup lookup(short_lived, "localhost", 1, Keep());
  }
  EXPECT_EQ(answers, 0);
}

// A client gives up like this if its connect timeout is shorter than the time that the name servers
// need.
TEST_F(NameLookupTest, AnAnswerThatCameTooLateIsForTheNextWhoAsks) {
  for (int i = 0; i < 3; ++i) NameLookup(loop, std::string(kSlowName), 6379, Keep());
  slow_may_answer = true;
  const base::BootTime begin = clock.BootNow();
  while (slow_answered == 0 && clock.BootNow() < begin + 10s) std::this_thread::yield();
  const NameLookup lookup(loop, std::string(kSlowName), 6379, Keep());
  ASSERT_TRUE(Until(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(IsLoopback(answer->front(), 6379));
  EXPECT_EQ(slow_asked, 1);
  ForgetKeptAnswer(std::string(kSlowName), 6379);
  const NameLookup afresh(loop, std::string(kSlowName), 6379, Keep());
  ASSERT_TRUE(Until(2));
  EXPECT_EQ(slow_asked, 2);
}

TEST(AddressIn, KnowsAddressesFromNames) {
  EXPECT_EQ(AddressIn("localhost", 1).size(), 0u);
  EXPECT_EQ(AddressIn(kNoName, 1).size(), 0u);
  ASSERT_EQ(AddressIn("127.0.0.1", 80).size(), 1u);
  EXPECT_TRUE(IsLoopback(AddressIn("127.0.0.1", 80)[0], 80));
  ASSERT_EQ(AddressIn("::1", 80).size(), 1u);
  EXPECT_TRUE(IsLoopback(AddressIn("::1", 80)[0], 80));
}

}  // namespace name_lookup_test
}  // namespace headgate::net
