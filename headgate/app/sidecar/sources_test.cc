// The settings of a sidecar from a file, the environment and flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "headgate/app/sidecar/settings.h"

namespace headgate::app {
namespace sources_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Sources {
  std::string file{};
  Environment environment{};
  std::vector<std::string> flags{};
};

struct Read {
  std::optional<SidecarSettings> settings;
  std::string err;
};

class SidecarSources : public ::testing::Test {
 protected:
  SidecarSources() { std::filesystem::create_directories(folder_); }
  ~SidecarSources() override { std::filesystem::remove_all(folder_); }

  Read From(Sources sources) {
    const std::string path = (folder_ / "sidecar.yaml").string();
    std::ofstream(path) << sources.file;
    if (!sources.file.empty()) sources.flags.push_back("--config=" + path);
    std::ostringstream out;
    std::ostringstream err;
    Read read{.settings =
                  ReadSidecarSettings(sources.flags, sources.environment, {.out = out, .err = err}),
              .err = {}};
    read.err = err.str();
    return read;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / "headgate_sidecar_sources";
};

constexpr const char* kFile = R"(upstream: http://127.0.0.1:9000
capacity: 40
cycle: 20s
listen: ["127.0.0.1:1", "unix:h.sock"]
no_reason: yes
threads: 2
known_host: sidecar.default.svc
client_weight: [a=2, b=3]
)";

TEST_F(SidecarSources, AFileGivesThemAll) {
  const auto [settings, err] = From({.file = kFile});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->share.pool.capacity, 40u);
  EXPECT_EQ(settings->share.pool.cycle, seconds(20));
  ASSERT_EQ(settings->listen.size(), 2u);
  EXPECT_EQ(settings->listen[1].endpoint.ToString(), "unix:" + (folder_ / "h.sock").string())
      << "relative to the file";
  EXPECT_FALSE(settings->proxy.relay.says_reason);
  EXPECT_EQ(settings->values().threads, 2u);
  EXPECT_THAT(settings->values().known_host, ElementsAre("sidecar.default.svc"));
  EXPECT_EQ(settings->share.weights.size(), 2u);
}

TEST_F(SidecarSources, TheEnvironmentComesBeforeTheFileAndFlagsBeforeBoth) {
  const auto [settings, err] = From({.file = kFile,
                                     .environment = {{"HEADGATE_CYCLE", "30s"},
                                                     {"HEADGATE_CAPACITY", "50"},
                                                     {"HEADGATE_CLIENT_WEIGHT", "a=4"},
                                                     {"PATH", "/bin"}},
                                     .flags = {"--capacity=60"}});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->share.pool.cycle, seconds(30));
  EXPECT_EQ(settings->share.pool.capacity, 60u);
  EXPECT_EQ(settings->share.weights.size(), 1u);
}

TEST_F(SidecarSources, TheEnvironmentNamesTheFileToo) {
  const std::string path = (folder_ / "named.yaml").string();
  std::ofstream(path) << kFile;
  const auto [settings, err] = From({.environment = {{"HEADGATE_CONFIG", path}}});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->values().threads, 2u);
}

TEST_F(SidecarSources, AMistakeIsToldWithItsPlace) {
  struct Mistake {
    Sources sources;
    const char* says;
  };
  const std::string needed = "upstream: http://127.0.0.1:9000\ncapacity: 40\n";
  const Mistake mistakes[] = {
      {{.file = needed + "cycle: soon\n"},
       "sidecar.yaml:3:8: cycle 'soon': write a duration such as"},
      {{.file = needed + "threads: many\n"}, "sidecar.yaml:3:10: threads 'many': write a whole"},
      {{.file = needed + "no_reason: maybe\n"},
       "sidecar.yaml:3:12: no_reason 'maybe': write no or yes"},
      {{.file = needed + "capaccity: 40\n"}, "unknown setting 'capaccity'"},
      {{.file = needed + "capaccity: 40\n"}, "did you mean 'capacity'?"},
      {{.file = needed + "snapshot: x\n"}, "`headgate sidecar --print-config` lists every setting"},
      {{.file = needed + "plan: access.log\n"}, "unknown setting 'plan'"},
      {{.file = needed, .environment = {{"HEADGATE_CYCEL", "1s"}}},
       "did you mean 'HEADGATE_CYCLE'?"},
      {{.file = needed, .environment = {{"HEADGATE_CYCLE", "soon"}}},
       "HEADGATE_CYCLE: cycle 'soon': write a duration"},
      {{.file = needed, .flags = {"--cycle=soon"}}, "--cycle: cycle 'soon': write a duration"},
      {{.flags = {"--config=/nowhere/x.yaml"}}, "name a settings file that can be read, or none"},
      {{.file = needed + "known_host: http://a\n"}, "sidecar.yaml:3:13: known_host: "},
      {{.file = needed + "reservation: 10\n"}, "sidecar.yaml:3:14: --reservation \"10\" is not"},
      {{.file = needed + "scope: fleet\n"}, "sidecar.yaml:3:8: --scope fleet without --store"},
      {{.file = needed + "capacity: 50\n"}, "setting 'capacity' appears twice"},
      {{.file = needed + "cycle: [1s, 2s]\n"}, "cycle takes one value"},
      {{.file = needed + "credential: word\n"}, "unknown setting 'credential'"},
      {{.file = needed, .environment = {{"HEADGATE_MAX_LIMITS", "7"}}},
       "HEADGATE_MAX_LIMITS: this variable does not name a setting"},
      {{.file = needed, .flags = {"--json"}}, "--json without --print-config"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto [settings, err] = From(mistake.sources);
    EXPECT_FALSE(settings) << mistake.says;
    EXPECT_THAT(err, HasSubstr(mistake.says));
  }
}

TEST_F(SidecarSources, PrintConfigShowsEachValueAndItsOrigin) {
  const auto [settings, err] = From({.file = kFile,
                                     .environment = {{"HEADGATE_QUEUE", "7"},
                                                     {"HEADGATE_STORE", "redis://me:word@a:1"},
                                                     {"HEADGATE_RULE", "client: 1/second"}},
                                     .flags = {"--print-config", "--mode=passthrough"}});
  ASSERT_TRUE(settings) << err;
  ASSERT_TRUE(settings->printed);
  EXPECT_THAT(*settings->printed, ::testing::ContainsRegex("\ncycle: 20s +# .*:3:8\n"));
  EXPECT_THAT(*settings->printed, ::testing::ContainsRegex("\nqueue: 7 +# HEADGATE_QUEUE\n"));
  EXPECT_THAT(*settings->printed, ::testing::ContainsRegex("\nmode: passthrough +# --mode\n"));
  EXPECT_THAT(*settings->printed, ::testing::ContainsRegex("\nclients: 1024 +# default\n"));
  EXPECT_THAT(*settings->printed, Not(HasSubstr("me:word")));
  EXPECT_THAT(*settings->printed, HasSubstr("hidden because it is a secret"));
}

TEST_F(SidecarSources, AllMistakesAreToldTogether) {
  const auto [settings, err] = From({.file = "capacity: many\ncycle: soon\nqueue: 0\n",
                                     .environment = {{"HEADGATE_MODE", "shadow"}},
                                     .flags = {"--via=a b"}});
  EXPECT_FALSE(settings);
  for (const char* says :
       {"sidecar.yaml:1:11: --capacity \"many\"", "sidecar.yaml:2:8: cycle 'soon'",
        "sidecar.yaml:3:8: queue '0'", "HEADGATE_MODE: mode 'shadow'", "error: --via \"a b\"",
        "error: --upstream: no upstream is given"})
    EXPECT_THAT(err, HasSubstr(says));
}

TEST_F(SidecarSources, EachSettingCanComeFromEachPlace) {
  for (const Setting& setting : AllSettings(Command::kSidecar)) {
    const std::vector<std::string> shown = ShowValue(setting, DefaultsOf(Command::kSidecar));
    const std::string value = shown.empty() ? "" : shown.front();
    const std::string name(setting.name);
    const std::string variable = EnvironmentNameOf(name);
    std::vector<std::pair<Sources, std::string>> places = {
        {{.file = name + ": \"" + value + "\"\n"}, "sidecar.yaml:1:"},
        {{.environment = {{variable, value}}}, variable}};
    // A flag of a list adds an item.
    if (!shown.empty()) places.push_back({{.flags = {FlagOf(setting), value}}, FlagOf(setting)});
    for (auto& [sources, origin] : places) {
      sources.flags.emplace_back("--print-config");
      const auto [settings, err] = From(sources);
      ASSERT_TRUE(settings) << name << err;
      EXPECT_THAT(*settings->printed, ::testing::ContainsRegex("\n" + name + ": .* # .*" + origin));
    }
  }
}

TEST_F(SidecarSources, EverySettingIsPrintedWithoutThoseThatAreNeeded) {
  const auto [settings, err] = From({.flags = {"--print-config"}});
  ASSERT_TRUE(settings) << err;
  for (const Setting& setting : AllSettings(Command::kSidecar))
    EXPECT_THAT(*settings->printed, HasSubstr("\n" + std::string(setting.name) + ": "));
}

TEST_F(SidecarSources, ThePrintedConfigurationIsAFileWithTheSameSettings) {
  const auto first = From({.file = kFile, .flags = {"--print-config"}});
  ASSERT_TRUE(first.settings) << first.err;
  const auto again = From({.file = *first.settings->printed, .flags = {"--print-config"}});
  ASSERT_TRUE(again.settings) << again.err;
  const auto second = From({.file = *first.settings->printed});
  ASSERT_TRUE(second.settings) << second.err;
  EXPECT_EQ(second.settings->share.pool.capacity, 40u);
  EXPECT_EQ(second.settings->listen.size(), 2u);
  EXPECT_EQ(second.settings->share.weights.size(), 2u);
  const auto json = From({.file = kFile, .flags = {"--print-config", "--json"}});
  ASSERT_TRUE(json.settings) << json.err;
  EXPECT_THAT(*json.settings->printed, HasSubstr("\"threads\": {"));
}

}  // namespace sources_test
}  // namespace headgate::app
