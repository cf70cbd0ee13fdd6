// The sources of credentials, with servers and files of the test's.
#include "headgate/store/dynamodb/credential_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>

#include "headgate/client/http/test_http_server.h"

namespace headgate::store::dynamodb {
namespace credential_source_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

// Time passes only when the test says so, but timers wait for real.
class SlowClock final : public base::Clock {
 public:
  base::BootTime BootNow() const override { return system_.BootNow(); }
  base::WallTime WallNow() const override { return base::WallTime::FromNanos(wall_ns_.load()); }
  void Advance(base::Duration d) { wall_ns_ += d.count(); }

 private:
  base::SystemClock system_;
  std::atomic<int64_t> wall_ns_{int64_t{1'795'607'999'900} * 1'000'000};  // 2026-11-25T11:59:59.9Z
};

class TestSource {
 public:
  explicit TestSource(Variables variables, const std::string& profile = "",
                      const std::string& container_origin = "http://127.0.0.1:1")
      : source(loop, clock,
               {.profile = profile,
                .environment =
                    [variables = std::move(variables)](const char* name) {
                      const auto found = variables.find(name);
                      return found == variables.end() ? std::string() : found->second;
                    },
                .pause_min = 10ms,
                .container_origin = container_origin},
               [this](const absl::Status& state) { states.push_back(state); }) {}

  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 20s); }
  bool Has(const std::string& access_key) {
    return Until([&] {
      const auto found = source.Get();
      return found.ok() && (*found)->access_key == access_key;
    });
  }
  std::string WhyNot() {
    EXPECT_TRUE(Until([&] { return !states.empty() && !states.back().ok(); }));
    return std::string(source.Get().status().message());
  }

  std::vector<absl::Status> states;
  SlowClock clock;
  net::EventLoop loop{clock};
  CredentialSource source;
};

std::string Keys(const std::string& access_key, const std::string& expiration) {
  return fmt::format(
      R"({{"Code":"Success","AccessKeyId":"{}","SecretAccessKey":"s","Token":"t","Expiration":"{}"}})",
      access_key, expiration);
}

class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-credentials-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

TEST(CredentialSource, TakesTheEnvironmentFirst) {
  Folder folder;
  TestSource source(
      {{"AWS_ACCESS_KEY_ID", "AK1"},
       {"AWS_SECRET_ACCESS_KEY", "s"},
       {"AWS_SHARED_CREDENTIALS_FILE",
        folder.Write("c", "[default]\naws_access_key_id=AK2\naws_secret_access_key=s\n")}});
  EXPECT_EQ((*source.source.Get())->access_key, "AK1");
}

TEST(CredentialSource, ReadsTheSharedFile) {
  Folder folder;
  const std::string path =
      folder.Write("c",
                   "[default]\naws_access_key_id=AK2\naws_secret_access_key=s\n"
                   "[dev]\naws_access_key_id=AK3\naws_secret_access_key=s\n");
  TestSource plain(Variables{{"AWS_SHARED_CREDENTIALS_FILE", path}});
  EXPECT_EQ((*plain.source.Get())->access_key, "AK2");
  // A profile that is named counts more than the environment.
  TestSource dev({{"AWS_SHARED_CREDENTIALS_FILE", path},
                  {"AWS_ACCESS_KEY_ID", "AK1"},
                  {"AWS_SECRET_ACCESS_KEY", "s"}},
                 "dev");
  EXPECT_EQ((*dev.source.Get())->access_key, "AK3");
  TestSource lost({{"AWS_SHARED_CREDENTIALS_FILE", path}}, "prod");
  EXPECT_THAT(lost.WhyNot(), HasSubstr("there is no profile [prod]"));
}

TEST(CredentialSource, ReadsTheFileAgainIfAServerRefusesItsKeys) {
  Folder folder;
  const std::string path =
      folder.Write("c", "[default]\naws_access_key_id=AK2\naws_secret_access_key=s\n");
  TestSource source(Variables{{"AWS_SHARED_CREDENTIALS_FILE", path}});
  ASSERT_TRUE(source.Has("AK2"));
  folder.Write("c", "[default]\naws_access_key_id=AK4\naws_secret_access_key=s\n");
  const auto old = *source.source.Get();
  EXPECT_TRUE(source.Until([&] {
    source.source.Refuse(*old);
    return (*source.source.Get())->access_key == "AK4";
  }));
}

TEST(CredentialSource, AsksForTheRoleOfTheContainer) {
  Folder folder;
  client::http::HttpRig server([](const client::http::RigRequest& request) {
    EXPECT_EQ(request.target, "/v2/credentials/x?y=1");
    if (request.fields.at("authorization") != "Bearer one")
      return client::http::RigReply{.status = 401};
    return client::http::RigReply{.body = Keys("AK5", "2026-11-25T18:00:00Z")};
  });
  TestSource full({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/v2/credentials/x?y=1"},
                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "not this"},
                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.Write("t", "Bearer one\n")}});
  EXPECT_TRUE(full.Has("AK5"));
  EXPECT_EQ((*full.source.Get())->session_token, "t");
  TestSource relative({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x?y=1"},
                       {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer one"}},
                      "", server.url());
  EXPECT_TRUE(relative.Has("AK5"));
  TestSource wrong({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x?y=1"},
                    {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer two"}},
                   "", server.url());
  EXPECT_THAT(wrong.WhyNot(), HasSubstr("the container's credentials endpoint answered 401"));
}

TEST(CredentialSource, AsksNoOtherMachineWithoutTls) {
  TestSource source(Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/x"}});
  EXPECT_THAT(source.WhyNot(), HasSubstr("without TLS it must be on this machine"));
}

client::http::RigReply Machine(const client::http::RigRequest& request, const std::string& keys) {
  if (request.method == "PUT") {
    EXPECT_EQ(request.target, "/latest/api/token");
    EXPECT_EQ(request.fields.at("x-aws-ec2-metadata-token-ttl-seconds"), "21600");
    return {.body = "the-token"};
  }
  EXPECT_EQ(request.fields.at("x-aws-ec2-metadata-token"), "the-token");
  if (request.target == "/latest/meta-data/iam/security-credentials/") return {.body = "gate\n"};
  EXPECT_EQ(request.target, "/latest/meta-data/iam/security-credentials/gate");
  return {.body = keys};
}

TEST(CredentialSource, AsksForTheRoleOfTheMachine) {
  client::http::HttpRig server([](const client::http::RigRequest& request) {
    return Machine(request, Keys("AK6", "2026-11-25T18:00:00Z"));
  });
  TestSource source(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url() + "/"}});
  EXPECT_TRUE(absl::IsUnavailable(source.source.Get().status())) << "not asked yet";
  EXPECT_TRUE(source.Has("AK6"));
}

TEST(CredentialSource, GetsNewCredentialsBeforeTheOldOnesExpire) {
  std::atomic<int> asked{0};
  std::atomic<bool> is_away{false};
  client::http::HttpRig server([&](const client::http::RigRequest& request) {
    if (is_away) return client::http::RigReply{.status = 503};
    if (request.method == "GET" && request.target.ends_with("/gate")) ++asked;
    return Machine(request, Keys("AK" + std::to_string(asked), "2026-11-25T12:00:00Z"));
  });
  TestSource source(Variables{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}});
  ASSERT_TRUE(source.Has("AK1"));
  // They are valid for 100 ms, so after 50 ms new ones are asked for.
  ASSERT_TRUE(source.Has("AK2"));
  // A failure leaves the old ones in use,
  is_away = true;
  ASSERT_TRUE(source.Until([&] { return !source.states.back().ok(); }));
  EXPECT_TRUE(source.source.Get().ok());
  // until they expire.
  source.clock.Advance(100ms);
  EXPECT_THAT(std::string(source.source.Get().status().message()),
              HasSubstr("the credentials have expired; no credentials for DynamoDB: the instance "
                        "metadata service answered 503"));
}

TEST(CredentialSource, SaysThatThereAreNone) {
  TestSource source(Variables{{"AWS_EC2_METADATA_DISABLED", "true"}});
  EXPECT_THAT(source.WhyNot(), HasSubstr("neither the environment nor a shared credentials file"));
  TestSource half(Variables{{"AWS_ACCESS_KEY_ID", "hunter2"}});
  EXPECT_THAT(half.WhyNot(), HasSubstr("only one is set"));
}

}  // namespace credential_source_test
}  // namespace headgate::store::dynamodb
