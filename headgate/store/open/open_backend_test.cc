#include "headgate/store/open/open_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/clock.h"

namespace headgate::store::open {
namespace open_backend_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(CheckOptions, FindsNothingWrongWithAPlainUrl) {
  EXPECT_THAT(CheckOptions({.url = "redis://127.0.0.1"}), IsEmpty());
  EXPECT_THAT(CheckOptions({.url = "redis+cluster://a,b"}), IsEmpty());
}

TEST(LogRequestsMax, IsWhatFitsIntoOneValueOfTheStore) {
  EXPECT_EQ(LogRequestsMax("redis://a"), 100'000u);
  EXPECT_EQ(LogRequestsMax("zk://a/x"), (1'048'500u - 4096) / 12);
  EXPECT_EQ(LogRequestsMax("dynamodb://t?region=r"), (400u * 1024 - 4096) / 12);
  EXPECT_EQ(LogRequestsMax(""), 100'000u);
}

TEST(CheckOptions, NamesTheKnownSchemesAndHidesThePassword) {
  for (const std::string url :
       {"http://ann:hunter2@host", "redis:hunter2@host", "", "://hunter2"}) {
    const auto problems = CheckOptions({.url = url});
    ASSERT_EQ(problems.size(), 1u) << url;
    EXPECT_EQ(problems[0].option, BackendOption::kUrl);
    EXPECT_THAT(problems[0].what, Not(HasSubstr("hunter2")));
    EXPECT_THAT(problems[0].hint, HasSubstr("redis://127.0.0.1:6379"));
  }
  EXPECT_EQ(CheckOptions({.url = "http://host"})[0].what,
            "'http' is not known; the schemes are redis, rediss, zk, dynamodb");
  EXPECT_EQ(CheckOptions({.url = "host"})[0].what, "'://' is missing");
}

TEST(CheckOptions, SaysWhichOptionAProblemComesFrom) {
  const BackendOptions options{.url = "rediss://gate@host",
                               .calls = {.timeout = base::Duration(0), .in_flight_max = 0},
                               .sentinel_user = "ann",
                               .ca_file = "/not/there/ca",
                               .certificate_file = "/not/there/certificate",
                               .key_file = "/not/there/key"};
  std::vector<BackendOption> found;
  for (const OptionProblem& problem : CheckOptions(options)) found.push_back(problem.option);
  EXPECT_THAT(found, ElementsAre(BackendOption::kUrl, BackendOption::kSentinelUser,
                                 BackendOption::kTimeout, BackendOption::kInFlightMax,
                                 BackendOption::kCaFile, BackendOption::kCertificateFile));
}

struct Process {
  absl::StatusOr<std::unique_ptr<Backend>> Open(const BackendOptions& options) {
    net::EventLoop* const loops[] = {&first, &second};
    return OpenBackend(options, loops,
                       {.limits = limits,
                        .clock = decisions,
                        .instance = "one",
                        .version = "1",
                        .seed = 1,
                        .listener_of = [this](uint32_t loop) {
                          listeners.push_back(loop);
                          return StoreListener{};
                        }});
  }

  const base::SystemClock clock;
  const base::DisciplinedClock decisions{clock};
  net::EventLoop first{clock}, second{clock};
  LimitTable limits;
  std::vector<uint32_t> listeners;
};

TEST(OpenBackend, MakesOneStorePerLoop) {
  Process process;
  const auto backend = process.Open({.url = "redis://gate:hunter2@127.0.0.1:1/3", .instances = 4});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->name(), "redis://127.0.0.1:1/3");
  EXPECT_NE(&(*backend)->store(0), &(*backend)->store(1));
  EXPECT_EQ(&(*backend)->store(1).limits(), &process.limits);
  EXPECT_EQ((*backend)->store(1).instances(), 4u);
  EXPECT_THAT(process.listeners, ElementsAre(0u, 1u));
}

TEST(OpenBackend, KnowsZooKeeper) {
  Process process;
  const auto backend = process.Open({.url = "zk://gate:hunter2@127.0.0.1:1,[::1]:2"});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->name(), "zk://127.0.0.1:1,[::1]:2/rate-limiter");
  EXPECT_NE(&(*backend)->store(0), &(*backend)->store(1));
  EXPECT_EQ((*backend)->store(1).instances(), 1u);
  EXPECT_TRUE(IsStrict("zk://a"));
  EXPECT_FALSE(IsStrict("redis://a"));
  EXPECT_FALSE(IsStrict("http://a"));
}

TEST(OpenBackend, KnowsDynamoDb) {
  const std::string url = "dynamodb://limits?region=x&endpoint=http://127.0.0.1:1";
  Process process;
  const auto backend = process.Open({.url = url});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->name(), url);
  EXPECT_NE(&(*backend)->store(0), &(*backend)->store(1));
  EXPECT_EQ((*backend)->store(1).instances(), 1u);
  EXPECT_TRUE(absl::IsUnavailable((*backend)->problem())) << "it was never usable";
  EXPECT_TRUE(IsStrict("dynamodb://a"));
  EXPECT_EQ(DefaultCalls(url).connections_per_server, 16u);
  EXPECT_EQ(DefaultCalls("redis://a").connections_per_server, 1u);
}

TEST(CheckOptions, RefusesWhatDynamoDbDoesNotHave) {
  const std::string url = "dynamodb://limits?region=x";
  EXPECT_THAT(CheckOptions({.url = url}), IsEmpty());
  const auto problems = CheckOptions({.url = "dynamodb://AK:hunter2@limits?region=x"});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].option, BackendOption::kUrl);
  EXPECT_THAT(problems[0].what, Not(HasSubstr("hunter2")));
  EXPECT_THAT(problems[0].hint, HasSubstr("dynamodb://TABLE"));
  std::vector<BackendOption> found;
  for (const OptionProblem& problem : CheckOptions({.url = url,
                                      .calls = {.timeout = base::Duration(0),
                                               .connect_timeout = base::Duration(0),
                                               .connections_per_server = 0,
                                               .in_flight_max = 0,
                                               .retry_percent = 3},
                                      .password = "x",
                                      .sentinel_user = "ann",
                                      .sentinel_password = "x",
                                      .ca_file = "/not/there/ca",
                                      .certificate_file = "/certificate",
                                      .key_file = "/key",
                                      .server_name = "a"}))
    found.push_back(problem.option);
  EXPECT_THAT(found, ElementsAre(BackendOption::kTimeout, BackendOption::kConnectTimeout,
                                 BackendOption::kConnections, BackendOption::kInFlightMax,
                                 BackendOption::kCaFile, BackendOption::kPassword,
                                 BackendOption::kSentinelUser, BackendOption::kSentinelPassword,
                                 BackendOption::kCertificateFile, BackendOption::kKeyFile,
                                 BackendOption::kServerName, BackendOption::kRetryPercent));
}

TEST(CreateTable, IsForStoresThatNeedATable) {
  using std::chrono_literals::operator""s;
  EXPECT_TRUE(absl::IsInvalidArgument(CreateTable({.url = "redis://127.0.0.1"}, 1s).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(CreateTable({.url = "http://127.0.0.1"}, 1s).status()));
}

TEST(CheckOptions, RefusesWhatZooKeeperDoesNotHave) {
  EXPECT_THAT(CheckOptions({.url = "zk://a,b:2182/limits"}), IsEmpty());
  EXPECT_THAT(CheckOptions({.url = "zk://gate@a", .password = "hunter2"}), IsEmpty());
  const auto problems = CheckOptions({.url = "zk://gate:hunter2@a:0"});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].what, "'0' is not a port (1 to 65535)");
  EXPECT_THAT(problems[0].hint, HasSubstr("zk://HOST:PORT"));
  std::vector<BackendOption> found;
  for (const OptionProblem& problem : CheckOptions({.url = "zk://a",
                                      .calls = {.timeout = base::Duration(0),
                                               .connect_timeout = std::chrono::seconds(1),
                                               .connections_per_server = 2,
                                               .in_flight_max = 0,
                                               .retry_percent = 3},
                                      .sentinel_user = "ann",
                                      .sentinel_password = "x",
                                      .ca_file = "/ca",
                                      .certificate_file = "/certificate",
                                      .key_file = "/key",
                                      .server_name = "a"}))
    found.push_back(problem.option);
  EXPECT_THAT(found, ElementsAre(BackendOption::kTimeout, BackendOption::kInFlightMax,
                                 BackendOption::kCaFile, BackendOption::kCertificateFile,
                                 BackendOption::kKeyFile, BackendOption::kServerName,
                                 BackendOption::kSentinelUser, BackendOption::kSentinelPassword,
                                 BackendOption::kConnections, BackendOption::kConnectTimeout,
                                 BackendOption::kRetryPercent));
}

TEST(OpenBackend, RefusesWhatCheckOptionsFinds) {
  Process process;
  EXPECT_THAT(process.Open({.url = "http://host"}).status().message(), HasSubstr("'http' is not"));
  EXPECT_THAT(process.Open({.url = "redis://gate@host"}).status().message(),
              HasSubstr("a user needs a password"));
}

TEST(OpenBackend, LeavesAlsoAStoreThatCannotBeReached) {
  Process process;
  const auto backend = process.Open({.url = "redis://127.0.0.1:1"});
  ASSERT_TRUE(backend.ok()) << backend.status();
  bool left = false;
  (*backend)->Leave([&] { left = true; });
  EXPECT_TRUE(process.first.RunUntil([&] { return left; }, std::chrono::seconds(20)));
  EXPECT_EQ((*backend)->instances(), 1u);
}

}  // namespace open_backend_test
}  // namespace headgate::store::open
