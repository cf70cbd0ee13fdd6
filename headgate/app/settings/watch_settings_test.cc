#include "headgate/app/settings/watch_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace headgate::app {
namespace watch_settings_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Each as "setting: what (hint)".
std::vector<std::string> ProblemsOf(std::vector<std::string> watch, std::string copy = "") {
  Configuration configuration;
  configuration.settings.watch = std::move(watch);
  configuration.settings.watch_copy = std::move(copy);
  CheckWatch(configuration);
  std::vector<std::string> said;
  for (const ConfigurationProblem& problem : configuration.problems)
    said.push_back(problem.what + " (" + problem.hint + ")");
  return said;
}

const std::string kHint = " (--watch zk://HOST:PORT/rate-limiter; files belong to --rules)";

TEST(WatchSettings, ACopyIsOfOnePlace) {
  const std::string copy = ::testing::TempDir() + "watch_settings_test_copy";
  EXPECT_THAT(ProblemsOf({"zk://a/x"}, copy), IsEmpty());
  EXPECT_THAT(ProblemsOf({"zk://a/x", "zk://a/y"}), IsEmpty());
  EXPECT_THAT(
      ProblemsOf({"zk://a/x", "zk://b/y"}, copy),
      ElementsAre("watch_copy: holds the rules of one place, and watch has 2 (give one --watch, or "
                  "leave out --watch-copy)"));
}

TEST(WatchSettings, ACopyIsAFileThatCanBeWritten) {
  EXPECT_THAT(ProblemsOf({"zk://a/x"}, ::testing::TempDir()),
              ElementsAre(HasSubstr("is a directory (name a file in a directory")));
  EXPECT_THAT(ProblemsOf({"zk://a/x"}, "/nowhere/copy"), ElementsAre(HasSubstr("cannot create")));
}

TEST(WatchSettings, OtherThanZooKeeperIsRefusedWithoutItsPassword) {
  EXPECT_THAT(ProblemsOf({"zk:/ann:pw@h/x"}),
              ElementsAre("watch: '(hidden)@h/x' is not a zk:// URL" + kHint));
  EXPECT_THAT(ProblemsOf({"ZK://ann:pw@h/x"}),
              ElementsAre("watch: 'ZK://(hidden)@h/x' is not a zk:// URL" + kHint));
  EXPECT_THAT(ProblemsOf({"etcd://h:2379/x"}),
              ElementsAre("watch: 'etcd://h:2379/x' is not a zk:// URL" + kHint));
  EXPECT_THAT(ProblemsOf({"rules.yaml"}),
              ElementsAre("watch: 'rules.yaml' is not a zk:// URL" + kHint));
  EXPECT_THAT(ProblemsOf({"zk://ann:p/w@h/x"}),
              ElementsAre(AllOf(HasSubstr("an '@' stands behind a '/'"), Not(HasSubstr("p/w")))));
}

TEST(WatchSettings, APasswordIsTheFirstLineOfAFile) {
  const std::string path = ::testing::TempDir() + "watch_settings_test_password";
  std::ofstream(path) << "p:a@ss%2f\nnot this\n";
  const auto checked = [&](std::string url, std::string file) {
    Configuration configuration;
    configuration.settings.watch = {std::move(url)};
    configuration.settings.watch_password_file = std::move(file);
    CheckWatch(configuration);
    return configuration;
  };
  const Configuration good = checked("zk://ann@h/x", path);
  EXPECT_THAT(good.problems, IsEmpty());
  EXPECT_EQ(good.settings.watch_password.Now(), "p:a@ss%2f");
  const Configuration without_user = checked("zk://h/x", path);
  ASSERT_EQ(without_user.problems.size(), 1u);
  EXPECT_THAT(without_user.problems[0].what,
              AllOf(HasSubstr("a password needs a user: zk://USER@HOST"), Not(HasSubstr("p:a"))));
  const Configuration without_file = checked("zk://ann@h/x", "/nowhere/password");
  ASSERT_EQ(without_file.problems.size(), 1u);
  EXPECT_THAT(without_file.problems[0].what, HasSubstr("/nowhere/password"));
  EXPECT_THAT(ProblemsOf({"zk://ann@h/x"}), ElementsAre(HasSubstr("a login is USER:PASSWORD")));
}

}  // namespace watch_settings_test
}  // namespace headgate::app
