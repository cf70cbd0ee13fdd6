#include "headgate/app/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "headgate/app/settings/configuration.h"

namespace headgate::app {
namespace settings_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

absl::Status Set(std::string_view name, std::vector<std::string> values, Settings& settings) {
  return SetValue(*FindSetting(name), values, settings);
}

std::string ErrorOf(std::string_view name, const std::string& value) {
  Settings settings;
  return std::string(Set(name, {value}, settings).message());
}

// Runs for `serve` and for `sidecar`.
class SettingsOfCommand : public ::testing::TestWithParam<Command> {};
INSTANTIATE_TEST_SUITE_P(Of, SettingsOfCommand,
                         ::testing::Values(Command::kServe, Command::kSidecar),
                         [](const auto& of) { return std::string(NameOf(of.param)); });

TEST_P(SettingsOfCommand, HaveOneNameEachAndSayWhatTheyAre) {
  std::set<std::string_view> names;
  for (const Setting& setting : AllSettings(GetParam())) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(setting.help.ends_with('.')) << setting.name;
    EXPECT_TRUE(setting.advice.ends_with('.')) << setting.name;
    EXPECT_LE(setting.help.size(), 100u) << setting.name;
  }
}

TEST_P(SettingsOfCommand, OfOneGroupStandTogether) {
  std::set<std::string_view> groups;
  std::string_view group;
  for (const Setting& setting : AllSettings(GetParam())) {
    if (setting.group == group) continue;
    group = setting.group;
    EXPECT_TRUE(groups.insert(group).second) << group;
  }
}

TEST_P(SettingsOfCommand, ReadBackWhatTheyShowOfTheirDefaults) {
  for (const Setting& setting : AllSettings(GetParam())) {
    Settings settings = DefaultsOf(GetParam());
    const std::vector<std::string> shown = ShowValue(setting, settings);
    EXPECT_TRUE(SetValue(setting, shown, settings).ok()) << setting.name;
    EXPECT_EQ(ShowValue(setting, settings), shown) << setting.name;
  }
}

TEST(Settings, SayWhichCommandsTheyBelongTo) {
  EXPECT_EQ(FindSetting("store")->of, Command::kBoth);
  EXPECT_NE(FindSetting("store", Command::kSidecar), nullptr);
  EXPECT_EQ(FindSetting("snapshot", Command::kSidecar), nullptr);
  EXPECT_EQ(FindSetting("handover"), nullptr);
  EXPECT_EQ(FindSetting("handover", Command::kSidecar)->of, Command::kSidecar);
  EXPECT_EQ(FindSetting("capacity")->of, Command::kBoth);
  EXPECT_TRUE(IsOfProxy(*FindSetting("capacity")));
  EXPECT_TRUE(IsOfProxy(*FindSetting("capacity", Command::kSidecar)));
  for (const std::string_view name : {"listen", "listen_proxy", "store", "threads"})
    EXPECT_FALSE(IsOfProxy(*FindSetting(name))) << name;
  EXPECT_EQ(FindSetting("threads")->max, 1024u);
  EXPECT_EQ(FindSetting("threads", Command::kSidecar)->max, 256u);
  EXPECT_EQ(DefaultsOf(Command::kServe).rate_limit_fields, "all");
  EXPECT_EQ(DefaultsOf(Command::kSidecar).rate_limit_fields, "draft");
}

TEST(Settings, NameTheirFlagAndTheirEnvironmentVariable) {
  EXPECT_EQ(FlagOf(*FindSetting("idle_timeout")), "--idle-timeout");
  EXPECT_EQ(EnvironmentNameOf("idle_timeout"), "HEADGATE_IDLE_TIMEOUT");
}

TEST(Settings, TakeValuesOfTheirType) {
  Settings settings;
  EXPECT_TRUE(Set("threads", {"4"}, settings).ok());
  EXPECT_EQ(settings.threads, 4u);
  EXPECT_TRUE(Set("idle_timeout", {"1m30s"}, settings).ok());
  EXPECT_EQ(settings.idle_timeout, 90s);
  EXPECT_TRUE(Set("rules", {"a.yaml", "b"}, settings).ok());
  EXPECT_THAT(settings.rules, ElementsAre("a.yaml", "b"));
  EXPECT_TRUE(Set("rules", {}, settings).ok());
  EXPECT_TRUE(settings.rules.empty());
  EXPECT_TRUE(Set("log_level", {"debug"}, settings).ok());
  EXPECT_EQ(settings.log_level, "debug");
}

TEST(Settings, TakeTrueAndFalseForYesAndNo) {
  for (const std::string_view name : {"merge_domains", "strict_store", "hash_keys"}) {
    Settings settings;
    EXPECT_TRUE(Set(name, {"true"}, settings).ok()) << name;
    EXPECT_THAT(ShowValue(*FindSetting(name), settings), ElementsAre("yes"));
    EXPECT_TRUE(Set(name, {"false"}, settings).ok()) << name;
    EXPECT_THAT(ShowValue(*FindSetting(name), settings), ElementsAre("no"));
  }
  EXPECT_EQ(ErrorOf("hash_keys", "maybe"), "hash_keys 'maybe': write no or yes");
  EXPECT_EQ(ErrorOf("log_level", "true"), "log_level 'true': write debug, info, warning or error");
}

TEST(Settings, SayWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(ErrorOf("threads", "x"), "threads 'x': write a whole number from 0 to 1024");
  EXPECT_EQ(ErrorOf("threads", "1025"), "threads '1025': write a whole number from 0 to 1024");
  EXPECT_EQ(ErrorOf("threads", "-1"), "threads '-1': write a whole number from 0 to 1024");
  EXPECT_EQ(ErrorOf("threads", ""), "threads '': write a whole number from 0 to 1024");
  EXPECT_EQ(ErrorOf("max_buckets", "0"),
            "max_buckets '0': write a whole number from 1 to 68719476736");
  EXPECT_EQ(ErrorOf("idle_timeout", "5"),
            "idle_timeout '5': write a duration such as 500ms, 30s or 1m30s");
  EXPECT_EQ(ErrorOf("idle_timeout", "0s"), "idle_timeout '0s': write a duration from 1ms to 365d");
  EXPECT_EQ(ErrorOf("log_level", "loud"), "log_level 'loud': write debug, info, warning or error");
  EXPECT_EQ(ErrorOf("log_level", ""), "log_level '': write debug, info, warning or error");
  Settings settings;
  EXPECT_EQ(std::string(Set("threads", {"1", "2"}, settings).message()),
            "threads takes one value, 2 are given");
}

TEST(Settings, NeverShowASecret) {
  Settings settings;
  EXPECT_TRUE(Set("credential", {"hunter2"}, settings).ok());
  EXPECT_THAT(ShowValue(*FindSetting("credential"), settings), ElementsAre("(hidden)"));
  EXPECT_TRUE(Set("store", {"redis://ann:hunter2@10.0.0.7:6379"}, settings).ok());
  EXPECT_THAT(ShowValue(*FindSetting("store"), settings),
              ElementsAre("redis://(hidden)@10.0.0.7:6379"));
  EXPECT_TRUE(Set("store", {"redis://10.0.0.7:6379"}, settings).ok());
  EXPECT_THAT(ShowValue(*FindSetting("store"), settings), ElementsAre("redis://10.0.0.7:6379"));
  for (const auto& [url, shown] :
       {std::pair<std::string, std::string>{"redis://a:1?password=hunter2", "redis://a:1?(hidden)"},
        {"redis://ann:hun/ter2@a", "redis://(hidden)@a"},
        {"redis://ann:hun?ter2@a?x=hunter2", "redis://(hidden)@a?(hidden)"},
        {"ann:hunter2@a://", "(hidden)@a://"},
        {"redis+unix:///run/a?db=2", "redis+unix:///run/a?db=2"},
        {"redis+unix:///run/a?db=2x", "redis+unix:///run/a?(hidden)"}}) {
    EXPECT_TRUE(Set("store", {url}, settings).ok());
    EXPECT_THAT(ShowValue(*FindSetting("store"), settings), ElementsAre(shown));
    EXPECT_EQ(HidesValue(*FindSetting("store"), settings), url != shown) << url;
  }
}

TEST(Settings, ResolveWhatIsAPath) {
  const auto resolved = [](std::string_view name, std::vector<std::string> values) {
    ResolvePaths(FindSetting(name)->paths, "/etc/headgate", values);
    return values;
  };
  EXPECT_THAT(resolved("rules", {"rules.d", "/srv/x.yaml", ""}),
              ElementsAre("/etc/headgate/rules.d", "/srv/x.yaml", ""));
  EXPECT_THAT(resolved("listen", {"unix:h.sock", "unix:/run/h.sock", ":80"}),
              ElementsAre("unix:/etc/headgate/h.sock", "unix:/run/h.sock", ":80"));
  EXPECT_THAT(resolved("listen", {"unix:h.sock?refusal_file=r.yaml", ":80?refusal_file=/r.yaml"}),
              ElementsAre("unix:/etc/headgate/h.sock?refusal_file=/etc/headgate/r.yaml",
                          ":80?refusal_file=/r.yaml"));
  EXPECT_THAT(resolved("log_level", {"info"}), ElementsAre("info"));
}

TEST(Settings, KnowWhatWasProbablyMeant) {
  EXPECT_EQ(NearestSetting("max_bucket"), "max_buckets");
  EXPECT_EQ(NearestSetting("lisen"), "listen");
  EXPECT_EQ(NearestSetting("handovver"), "");
  EXPECT_EQ(NearestSetting("handovver", Command::kSidecar), "handover");
  EXPECT_EQ(NearestSetting("capaccity", Command::kSidecar), "capacity");
  EXPECT_EQ(NearestSetting("completely_different"), "");
}

}  // namespace settings_test
}  // namespace headgate::app
