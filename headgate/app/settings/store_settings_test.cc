#include "headgate/app/settings/store_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "headgate/files/files.h"

namespace headgate::app {
namespace store_settings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string FileWith(std::string_view name, std::string_view text) {
  const std::string path = ::testing::TempDir() + "store_settings_test_" + std::string(name);
  EXPECT_TRUE(files::ReplaceFile(path, [&](const auto& write) { write(text); }).ok());
  return path;
}

Configuration FromFile(std::string_view text) {
  Configuration configuration;
  Apply(ReadSettingsFile(text, "headgate.yaml", configuration.problems), configuration);
  EXPECT_THAT(configuration.problems, IsEmpty());
  return configuration;
}

StoreSettings Read(std::string_view text) {
  Configuration configuration = FromFile(text);
  const auto store = ReadStoreSettings(configuration);
  for (const ConfigurationProblem& problem : configuration.problems) ADD_FAILURE() << problem.what;
  return store.value_or(StoreSettings{});
}

// Each as "where: what".
std::vector<std::string> ProblemsOf(std::string_view text) {
  Configuration configuration = FromFile(text);
  EXPECT_TRUE(ReadStoreSettings(configuration));
  std::vector<std::string> said;
  for (const ConfigurationProblem& problem : configuration.problems)
    said.push_back(problem.where.place + ": " + problem.what);
  return said;
}

TEST(StoreSettings, AreNothingWithoutAStore) {
  Configuration configuration = FromFile("store_password_file: /not/there\n");
  EXPECT_FALSE(ReadStoreSettings(configuration));
  EXPECT_THAT(configuration.problems, IsEmpty());
}

TEST(StoreSettings, PutThePasswordOfAFileBesideTheUserOfTheUrl) {
  const StoreSettings store = Read("store: redis://gate@host\nstore_password_file: " +
                                   FileWith("password", "secret\nmore\n"));
  EXPECT_EQ(store.backend.url, "redis://gate@host");
  EXPECT_EQ(store.backend.password.Now(), "secret");
}

TEST(StoreSettings, ReadThePasswordOfAFileAgainEachTime) {
  const std::string path = FileWith("rotated", "first\n");
  const StoreSettings store = Read("store: redis://host\nstore_password_file: " + path);
  const base::Secret password = store.backend.password;
  EXPECT_EQ(password.Now(), "first");
  FileWith("rotated", "second\n");
  EXPECT_EQ(password.Now(), "second");
  FileWith("rotated", "");
  EXPECT_EQ(password.Now(), "second") << "a file that is being written";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(password.Now(), "second") << "a pipe would make the reader wait";
  std::filesystem::remove(path);
  EXPECT_EQ(password.Now(), "second");
}

TEST(StoreSettings, SayAllThatIsWrongWithItsPlace) {
  EXPECT_THAT(
      ProblemsOf("store: rediss://gate@host\n"
                 "store_ca_file: /not/there/ca\n"
                 "store_certificate_file: /not/there/certificate\n"
                 "store_key_file: /not/there/key\n"
                 "hash_keys: true\n"
                 "store_sentinel_user: ann\n"),
      UnorderedElementsAre(
          "headgate.yaml:1:8: store: a user needs a password",
          HasSubstr("headgate.yaml:2:16: store_ca_file: the CA file '/not/there/ca' cannot"),
          HasSubstr("headgate.yaml:3:25: store_certificate_file: the certificate file '/not"),
          HasSubstr("headgate.yaml:5:12: hash_keys: needs hash_keys_secret_file"),
          "headgate.yaml:6:22: store_sentinel_user: a user of the sentinels needs a password"));
}

TEST(StoreSettings, SayOnceThatAFileCannotBeRead) {
  EXPECT_THAT(ProblemsOf("store: redis+sentinel://gate@host/main\n"
                         "store_password_file: /not/there\n"
                         "store_sentinel_user: ann\n"
                         "store_sentinel_password_file: " +
                         FileWith("empty", "\n") + "\nhash_keys_secret_file: /not/there\n"),
              UnorderedElementsAre(
                  HasSubstr("headgate.yaml:2:22: store_password_file: cannot open /not/there"),
                  HasSubstr("headgate.yaml:4:31: store_sentinel_password_file: the first line of"),
                  HasSubstr("headgate.yaml:5:24: hash_keys_secret_file: cannot open /not/there")));
}

TEST(StoreSettings, NameWhatAWrongUrlDoesNotHide) {
  EXPECT_THAT(ProblemsOf("store: http://host\nstore_password_file: /not/there\n"),
              UnorderedElementsAre(HasSubstr("headgate.yaml:1:8: store: 'http' is not known"),
                                   HasSubstr("headgate.yaml:2:22: store_password_file")));
}

TEST(StoreSettings, TlsSettingsNeedTls) {
  EXPECT_THAT(
      ProblemsOf("store: redis://host\nstore_ca_file: /ca\nstore_server_name: host\n"),
      ElementsAre("headgate.yaml:2:16: store_ca_file: the URL of the store does not use TLS",
                  "headgate.yaml:3:20: store_server_name: the URL of the store does not use TLS"));
}

TEST(StoreSettings, ReachTheClientAndItsBreaker) {
  const store::CallOptions defaults = Read("store: redis://host").backend.calls;
  EXPECT_EQ(defaults.breaker, store::BreakerOptions());
  EXPECT_EQ(defaults.timeout, store::CallOptions().timeout);
  EXPECT_EQ(defaults.connections_per_server, store::CallOptions().connections_per_server);
  const store::CallOptions set = Read(
                                     "store: redis://host\n"
                                     "store_connections: 2\n"
                                     "store_in_flight_max: 3\n"
                                     "store_retry_percent: 4\n"
                                     "store_breaker_failures_in_row: 5\n"
                                     "store_breaker_no_progress: 8s\n"
                                     "store_breaker_open_min: 9s\n"
                                     "store_breaker_open_max: 10s\n"
                                     "store_breaker_jitter_percent: 11\n")
                                     .backend.calls;
  EXPECT_EQ(set.connections_per_server, 2u);
  EXPECT_EQ(set.in_flight_max, 3u);
  EXPECT_EQ(set.retry_percent, 4u);
  EXPECT_EQ(set.breaker, (store::BreakerOptions{.failures_in_row = 5,
                                                .no_progress = std::chrono::seconds(8),
                                                .open_min = std::chrono::seconds(9),
                                                .open_max = std::chrono::seconds(10),
                                                .jitter_percent = 11}));
}

TEST(StoreSettings, ATimeoutThatSomebodyHasChosenBoundsTheWholeCall) {
  const store::CallOptions defaults = Read("store: redis://host").backend.calls;
  EXPECT_EQ(defaults.silence_max, store::CallOptions().silence_max);
  EXPECT_EQ(defaults.wait_max, store::CallOptions().wait_max);
  const store::CallOptions set = Read("store: redis://host\nstore_timeout: 20ms\n").backend.calls;
  EXPECT_EQ(set.silence_max, std::chrono::milliseconds(20));
  EXPECT_EQ(set.wait_max, std::chrono::milliseconds(20));
}

TEST(StoreSettings, NoRequestIsCutOffWhileItWaitsForALock) {
  EXPECT_THAT(ProblemsOf("store: zk://a\nstore_timeout: 250ms\nstore_lock_timeout: 10s\n"),
              ElementsAre(HasSubstr(
                  "headgate.yaml:3:21: store_lock_timeout: must be shorter than request_timeout")));
  EXPECT_THAT(ProblemsOf("store: redis://a\nstore_lock_timeout: 10s\n"), IsEmpty());
  const auto default_of = [](std::string_view text) {
    Configuration configuration = FromFile(text);
    UseDefaultsOfStore(configuration);
    return configuration.settings.store_lock_timeout;
  };
  EXPECT_EQ(default_of("store: zk://a\n"), std::chrono::seconds(5));
  EXPECT_EQ(default_of("store: zk://a\nrequest_timeout: 4s\n"), std::chrono::seconds(2));
}

TEST(StoreSettings, AStrictStoreHasOtherDefaults) {
  const auto defaults_of = [](std::string_view text) {
    Configuration configuration = FromFile(text);
    UseDefaultsOfStore(configuration);
    return std::pair(configuration.settings.store_timeout, configuration.settings.on_store_failure);
  };
  const auto pair = [](base::Duration timeout, std::string on_failure) {
    return std::pair(timeout, std::move(on_failure));
  };
  using std::chrono::milliseconds;
  EXPECT_EQ(defaults_of("store: redis://a\n"), pair(store::CallOptions().timeout, "local"));
  EXPECT_EQ(defaults_of("store: zk://a\n"), pair(milliseconds(250), "deny"));
  EXPECT_EQ(defaults_of("store: zk://a\nstore_timeout: 10ms\non_store_failure: local\n"),
            pair(milliseconds(10), "local"));
}

TEST(StoreSettings, BreakerSettingsMustFitTogether) {
  EXPECT_THAT(ProblemsOf("store: redis://host\nstore_breaker_open_max: 100ms\n"),
              ElementsAre("headgate.yaml:2:25: store_breaker_open_max: breaker_open_max is less "
                          "than breaker_open_min"));
}

TEST(StoreSettings, SentinelSettingsNeedSentinels) {
  EXPECT_THAT(ProblemsOf("store: redis://host\nstore_sentinel_password_file: " +
                         FileWith("password", "secret")),
              ElementsAre(HasSubstr(
                  "headgate.yaml:2:31: store_sentinel_password_file: a login for sentinels")));
  EXPECT_THAT(ProblemsOf("store: rediss://host\nstore_key_file: /key\n"),
              ElementsAre(HasSubstr(
                  "headgate.yaml:2:17: store_key_file: a client certificate needs its key")));
}

TEST(StoreSettings, ThatDoNothingWithoutAStoreAreNamed) {
  EXPECT_EQ(ChangedSettings(Configuration(), IsOfStore), "");
  EXPECT_EQ(ChangedSettings(
                FromFile("strict_store: yes\nstore_timeout: 10ms\nsharing: exact\nthreads: 2\n"),
                IsOfStore),
            "strict_store, sharing");
}

}  // namespace store_settings_test
}  // namespace headgate::app
