#include "headgate/testing/scenario_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace headgate::testing {
namespace scenario_command_test {

constexpr std::string_view kRight =
    "rule login = 1 per 10s burst 5\n"
    "at 0s login:ann x5 allow remaining 0\n"
    "at 0s login:ann    deny retry 10s reset 50s\n";
constexpr std::string_view kWrong =
    "rule login = 1 per 10s burst 5\n"
    "at 0s login:ann x6 allow\n"
    "at 0s login:ann    deny retry 9s\n";
constexpr std::string_view kBroken = "at 0s login:ann allow\nrule\n";

class ScenarioCommand : public ::testing::Test {
 protected:
  ScenarioCommand() : directory_(::testing::TempDir() + "scenario_command_test") {
    std::filesystem::create_directories(directory_);
  }
  ~ScenarioCommand() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, std::string_view text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  int Run(const std::vector<std::string>& paths) {
    return RunScenarioFiles(paths, out, [this](std::string_view what, std::string_view hint) {
      err << what << "\nhint: " << hint << '\n';
    });
  }

  std::ostringstream out;
  std::ostringstream err;

 private:
  const std::filesystem::path directory_;
};

TEST_F(ScenarioCommand, SaysThatAllCameAsExpected) {
  const std::string path = Write("right.scenario", kRight);
  EXPECT_EQ(Run({path}), 0);
  EXPECT_EQ(out.str(), path + ": all as expected (2 steps)\n");
  EXPECT_EQ(err.str(), "");
}

TEST_F(ScenarioCommand, SaysEachLineThatDiffers) {
  const std::string path = Write("wrong.scenario", kWrong);
  EXPECT_EQ(Run({path}), 1);
  EXPECT_EQ(out.str(), path + ":2: expected allow, got deny retry 10s (request 6 of 6)\n" +  //
                           path + ":3: expected deny retry 9s, got deny retry 10s\n");
  EXPECT_EQ(err.str(), "");
}

TEST_F(ScenarioCommand, SaysAllThatIsNoScenario) {
  const std::string path = Write("broken.scenario", kBroken);
  EXPECT_EQ(Run({path}), 2);
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(),
            path + ":1:7: no line above says what rule \"login\" is\n" +  //
                "hint: rule login = N per DURATION\n" +                   //
                path +
                ":2:5: expected a rule's name, without : and = in it, but the line ends here\n" +
                "hint: rule NAME = N per DURATION … [and N per DURATION …]\n");
}

TEST_F(ScenarioCommand, NamesAFileThatItCannotRead) {
  EXPECT_EQ(Run({"/nowhere/a.scenario"}), 2);
  EXPECT_EQ(err.str(),
            "cannot read the scenario /nowhere/a.scenario: No such file or directory\n"
            "hint: name a file that can be read: headgate scenario FILE…\n");
}

TEST_F(ScenarioCommand, NamesADirectoryThatItCannotRead) {
  EXPECT_EQ(Run({std::filesystem::path(Write("right.scenario", kRight)).parent_path()}), 2);
  EXPECT_NE(err.str().find("Is a directory"), std::string::npos) << err.str();
}

TEST_F(ScenarioCommand, RunsEachFileInAWorldOfItsOwnAndAnswersTheWorst) {
  const std::string right = Write("right.scenario", kRight);
  const std::string wrong = Write("wrong.scenario", kWrong);
  EXPECT_EQ(Run({right, right}), 0);
  EXPECT_EQ(Run({wrong, right}), 1);
  EXPECT_EQ(Run({right, "/nowhere", wrong}), 2);
}

TEST_F(ScenarioCommand, RefusesAFileThatIsTooLarge) {
  EXPECT_EQ(Run({Write("large.scenario", std::string(2 << 20, '\n'))}), 2);
  EXPECT_NE(err.str().find("a scenario has at most 1048576 bytes"), std::string::npos) << err.str();
}

TEST_F(ScenarioCommand, FindsNothingWrongInAnEmptyFile) {
  EXPECT_EQ(Run({Write("empty.scenario", "")}), 0);
}

}  // namespace scenario_command_test
}  // namespace headgate::testing
