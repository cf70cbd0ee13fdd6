#include "headgate/app/settings/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "headgate/files/files.h"
#include "tests/source_dir.h"

namespace headgate::app {
namespace configuration_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Configuration FromFile(std::string_view text) {
  Configuration configuration;
  Apply(ReadSettingsFile(text, "headgate.yaml", configuration.problems), configuration);
  return configuration;
}

std::vector<std::string> ProblemsOf(std::string_view text) {
  std::vector<std::string> shown;
  for (const ConfigurationProblem& problem : FromFile(text).problems) {
    shown.push_back(problem.where.place + ": " + problem.what + " | " + problem.hint);
  }
  return shown;
}

std::string Source(const std::string& path) {
  auto text = files::ReadFile(SourceDir() / path, size_t{1} << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return *std::move(text);
}

TEST(SettingsFile, SetsWhatItNames) {
  const Configuration configuration = FromFile(
      "max_buckets: 1000\n"
      "idle_timeout: 1m\n"
      "rules: [a.yaml, 'b c.yaml']\n"
      "rule: 'user: 5/minute'\n"
      "merge_domains: yes\n"
      "snapshot: ~\n");
  EXPECT_THAT(configuration.problems, IsEmpty());
  EXPECT_EQ(configuration.settings.max_buckets, 1000u);
  EXPECT_EQ(configuration.settings.idle_timeout, std::chrono::minutes(1));
  EXPECT_THAT(configuration.settings.rules, ElementsAre("a.yaml", "b c.yaml"));
  EXPECT_THAT(configuration.settings.rule, ElementsAre("user: 5/minute"));
  EXPECT_EQ(configuration.settings.merge_domains, "yes");
  EXPECT_EQ(configuration.OriginOf("max_buckets"), "headgate.yaml:1:14");
  EXPECT_EQ(configuration.OriginOf("threads"), "default");
}

TEST(SettingsFile, MayBeEmpty) {
  EXPECT_THAT(ProblemsOf(""), IsEmpty());
  EXPECT_THAT(ProblemsOf("# nothing\n"), IsEmpty());
}

TEST(SettingsFile, ReportsAllProblemsWithTheirPlaceAndAHint) {
  EXPECT_THAT(ProblemsOf("max_bucket: 3\n"
                         "threads: many\n"
                         "threads: 2\n"
                         "listen: [a, {b: c}]\n"
                         "snapshot: [a]\n"
                         "wholly_unknown: 1\n"),
              ::testing::UnorderedElementsAre(
                  "headgate.yaml:1:1: unknown setting 'max_bucket' | did you mean 'max_buckets'?",
                  "headgate.yaml:2:10: threads 'many': write a whole number from 0 to 1024 | "
                  "threads: Event loops; 0 is "
                  "one per core.",
                  "headgate.yaml:3:1: setting 'threads' appears twice | keep one of them",
                  "headgate.yaml:4:13: listen: an item is not a plain value | put text that "
                  "contains ':' in quotes",
                  "headgate.yaml:5:11: snapshot takes one value | write `snapshot: …`",
                  "headgate.yaml:6:1: unknown setting 'wholly_unknown' | `headgate serve "
                  "--print-config` lists every "
                  "setting"));
}

TEST(SettingsFile, MustBeAMapping) {
  EXPECT_THAT(
      ProblemsOf("- a\n"),
      ElementsAre("headgate.yaml:1:1: the file is not a mapping of settings to values | write "
                  "lines such as `max_buckets: 1000000`"));
  EXPECT_EQ(ProblemsOf("a: [\n").size(), 1u);
}

TEST(Configuration, FlagsWinOverTheEnvironmentAndThatOverTheFile) {
  const Environment environment = {
      {"HEADGATE_THREADS", "2"}, {"HEADGATE_MAX_LIMITS", "200"}, {"HOME", "/"}};
  Configuration configuration = FromFile("threads: 1\nmax_limits: 100\nmax_buckets: 10\n");
  Apply(ReadEnvironment(environment, configuration.problems), configuration);
  Apply({{"threads", {{"3"}, {"--threads"}}}}, configuration);
  EXPECT_THAT(configuration.problems, IsEmpty());
  EXPECT_EQ(configuration.settings.threads, 3u);
  EXPECT_EQ(configuration.OriginOf("threads"), "--threads");
  EXPECT_EQ(configuration.settings.max_limits, 200u);
  EXPECT_EQ(configuration.OriginOf("max_limits"), "HEADGATE_MAX_LIMITS");
  EXPECT_EQ(configuration.settings.max_buckets, 10u);
  EXPECT_EQ(configuration.OriginOf("max_buckets"), "headgate.yaml:3:14");
}

TEST(Configuration, ListsInTheEnvironmentAreSeparatedBySemicolons) {
  Configuration configuration;
  Apply(ReadEnvironment({{"HEADGATE_RULE", "a: 1/s; b,c: 2/s ;"}}, configuration.problems),
        configuration);
  EXPECT_THAT(configuration.settings.rule, ElementsAre("a: 1/s", "b,c: 2/s"));
}

TEST(Configuration, ChecksWhatSettingsSayTogether) {
  Configuration configuration;
  configuration.settings.listen = {"8080"};
  configuration.settings.credential = "a";
  configuration.settings.credential_file = "b";
  CheckTogether(configuration);
  ASSERT_EQ(configuration.problems.size(), 2u);
  EXPECT_THAT(configuration.problems[0].what, HasSubstr("address '8080': the port is missing"));
  EXPECT_EQ(configuration.problems[1].what, "credential_file: credential is set too");
}

TEST(Configuration, NoneTurnsAnAddressOffButNotAllOfThem) {
  Configuration configuration;
  configuration.settings.admin_listen = "none";
  configuration.settings.listen = {"none"};
  CheckTogether(configuration);
  EXPECT_EQ(configuration.settings.admin_listen, "");
  ASSERT_EQ(configuration.problems.size(), 1u);
  EXPECT_EQ(configuration.problems[0].what, "listen: there is no address to listen on");
}

TEST(Configuration, PrintsAFileThatMeansTheSame) {
  Configuration configuration =
      FromFile("rule: ['a: 1/s', 'b=\"x\": 2/s']\nidle_timeout: 90s\nsnapshot: '/x: y'\n");
  const std::string printed = PrintConfiguration(configuration);
  EXPECT_THAT(printed, HasSubstr("# headgate.yaml:2:15"));
  const Configuration again = FromFile(printed);
  EXPECT_THAT(again.problems, IsEmpty());
  for (const Setting& setting : AllSettings()) {
    EXPECT_EQ(ShowValue(setting, again.settings), ShowValue(setting, configuration.settings))
        << setting.name;
  }
}

TEST(Configuration, PrintsSecretsAsCommentsSoThatTheFileStillWorks) {
  const Configuration configuration =
      FromFile("credential: hunter2\nstore: redis://:hunter2@10.0.0.7\n");
  const std::string printed = PrintConfiguration(configuration);
  EXPECT_THAT(printed, Not(HasSubstr("hunter2")));
  EXPECT_THAT(printed, HasSubstr("\n# store: \"redis://(hidden)@10.0.0.7\""));
  EXPECT_THAT(printed,
              HasSubstr("# headgate.yaml:1:13: hidden because it is a secret; set it again\n"));
  const Configuration again = FromFile(printed);
  EXPECT_THAT(again.problems, IsEmpty());
  EXPECT_EQ(again.settings.credential, "");
  EXPECT_EQ(again.settings.store, "");
  const auto as_json = nlohmann::json::parse(PrintConfigurationJson(configuration));
  EXPECT_TRUE(as_json.at("credential").at("value").is_null());
  EXPECT_EQ(as_json.at("store").at("hidden"), "redis://(hidden)@10.0.0.7");
}

TEST(Configuration, PrintsPathsThatHoldFromEveryDirectory) {
  Configuration configuration;
  configuration.settings.rules = {"rules.d"};
  EXPECT_THAT(PrintConfiguration(configuration),
              HasSubstr("rules: [\"" + std::filesystem::current_path().string() + "/rules.d\"]"));
}

TEST(Configuration, ReadsPathsOfAFileAsRelativeToIt) {
  Configuration configuration;
  Apply(ReadSettingsFile("rules: [r.d, /x]\nsnapshot: s\nlisten: ['unix:h.sock']\n",
                         "/etc/h/headgate.yaml", configuration.problems),
        configuration);
  EXPECT_THAT(configuration.settings.rules, ElementsAre("/etc/h/r.d", "/x"));
  EXPECT_EQ(configuration.settings.snapshot, "/etc/h/s");
  EXPECT_THAT(configuration.settings.listen, ElementsAre("unix:/etc/h/h.sock"));
}

TEST(Configuration, RefusesVariablesThatNameNoSetting) {
  std::vector<ConfigurationProblem> problems;
  ReadEnvironment(
      {{"HEADGATE_IDEL_TIMEOUT", "1m"}, {"HEADGATE_CONFG", "x"}, {"HEADGATE_WHATEVER", ""}},
      problems);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].where.place, "HEADGATE_CONFG");
  EXPECT_EQ(problems[0].hint, "did you mean 'HEADGATE_CONFIG'?");
  EXPECT_EQ(problems[1].hint, "did you mean 'HEADGATE_IDLE_TIMEOUT'?");
  EXPECT_EQ(problems[2].what, "this variable does not name a setting");
  problems.clear();
  // Kubernetes sets these for a service called headgate, and our tests the last two.
  for (const char* name : {"HEADGATE_SERVICE_HOST", "HEADGATE_SERVICE_PORT_HTTP", "HEADGATE_PORT",
                           "HEADGATE_PORT_8080_TCP_ADDR", "HEADGATE_CONFIG", "HEADGATE_BINARY"}) {
    ReadEnvironment({{name, "x"}}, problems);
  }
  EXPECT_THAT(problems, IsEmpty());
}

TEST(Configuration, OneProtocolsAddressAloneIsTheOnlyOne) {
  for (const char* name : {"listen_resp", "listen_http"}) {
    Configuration alone = FromFile(std::string(name) + ": [\":1\"]\n");
    CheckTogether(alone);
    EXPECT_THAT(alone.settings.listen, IsEmpty());
    EXPECT_EQ(alone.settings.admin_listen, "");
    Configuration with_others =
        FromFile(std::string(name) + ": [\":1\"]\nlisten: [\":2\"]\nadmin_listen: \":3\"\n");
    CheckTogether(with_others);
    EXPECT_THAT(with_others.settings.listen, ElementsAre(":2"));
    EXPECT_EQ(with_others.settings.admin_listen, ":3");
  }
}

TEST(Configuration, RefusesHostNamesThatCouldNeverMatch) {
  Configuration configuration = FromFile("known_host: ['*.example.com', 'a*b']\n");
  CheckTogether(configuration);
  ASSERT_EQ(configuration.problems.size(), 1u);
  EXPECT_EQ(configuration.problems[0].what,
            "known_host: 'a*b': a * may only be the whole first label, as in *.example.com");
}

TEST(Configuration, PrintsJsonWithValuesOfTheirTypesAndTheirOrigins) {
  const auto printed = nlohmann::json::parse(PrintConfigurationJson(FromFile("threads: 2\n")));
  EXPECT_EQ(printed.at("threads").at("value"), 2);
  EXPECT_EQ(printed.at("threads").at("from"), "headgate.yaml:1:10");
  EXPECT_EQ(printed.at("listen").at("value"), nlohmann::json({"127.0.0.1:8080"}));
  EXPECT_EQ(printed.size(), AllSettings().size());
}

TEST(ExampleFile, NamesEverySettingAtItsDefault) {
  const Configuration configuration = FromFile(Source("examples/headgate.yaml"));
  EXPECT_THAT(configuration.problems, IsEmpty());
  for (const Setting& setting : AllSettings()) {
    EXPECT_NE(configuration.OriginOf(setting.name), "default") << setting.name << " is missing";
    EXPECT_EQ(ShowValue(setting, configuration.settings), ShowValue(setting, Settings{}))
        << setting.name;
  }
}

std::string WithSingleSpaces(const std::string& text) {
  std::istringstream words(text);
  std::string out, word;
  while (words >> word) out += word + ' ';
  return out;
}

// The page contains the text of a setting as the table has it; line breaks may differ. Only the
// words between them are the page's own. Or the page only names the setting.
std::string OnPage(const Setting& setting, bool is_described) {
  return is_described ? WithSingleSpaces(DescribeForPage(setting))
                      : "`" + std::string(setting.name) + "`";
}

// It describes all settings but those of the proxy.
TEST(ConfigurationPage, ListsEverySettingAsTheTableHasIt) {
  const std::string page = WithSingleSpaces(Source("docs/reference/configuration.md"));
  for (const Setting& setting : AllSettings())
    EXPECT_THAT(page, HasSubstr(OnPage(setting, !IsOfProxy(setting))));
}

// It describes those of the proxy, and of the sidecar alone.
TEST(SidecarSettingsPage, ListsEverySettingAsTheTableHasIt) {
  const std::string page = WithSingleSpaces(Source("docs/reference/sidecar-settings.md"));
  for (const Setting& setting : AllSettings(Command::kSidecar)) {
    const bool is_described = setting.of == Command::kSidecar || IsOfProxy(setting);
    EXPECT_THAT(page, HasSubstr(OnPage(setting, is_described)));
  }
}

TEST(Configuration, TheSettingsOfTheProxyNeedAnAddressOfIt) {
  const auto together = [](std::string_view text) {
    Configuration configuration = FromFile(text);
    CheckTogether(configuration);
    return configuration;
  };
  const auto without = together("threads: 2\ncapacity: 40\n").problems;
  ASSERT_EQ(without.size(), 1u);
  EXPECT_EQ(without[0].where.place, "headgate.yaml:2:11");
  EXPECT_EQ(without[0].what, "capacity: there is no address of a proxy");
  const Configuration with = together("listen_proxy: \":8000\"\ncapacity: 40\n");
  EXPECT_THAT(with.problems, IsEmpty());
  EXPECT_THAT(with.settings.listen, ElementsAre("127.0.0.1:8080")) << "beside its own fronts";
  EXPECT_THAT(together("listen: none\nlisten_proxy: \":8000\"\n").problems, IsEmpty());
}

}  // namespace configuration_test
}  // namespace headgate::app
