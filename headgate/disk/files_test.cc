#include "headgate/disk/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace headgate::disk {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() { std::filesystem::create_directory(directory_); }
  ~Files() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ / name; }

 private:
  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("headgate_disk_files_test_" + std::to_string(::getpid()));
};

absl::Status Replace(const std::string& path, std::string_view text) {
  return ReplaceFile(path, [&](const auto& write) {
    write(text.substr(0, text.size() / 2));
    write(text.substr(text.size() / 2));
  });
}

TEST_F(Files, ReplacesAFileWholeAndKeepsItPrivate) {
  const std::string path = Path("snapshot");
  ASSERT_TRUE(Replace(path, "old").ok());
  ASSERT_TRUE(Replace(path, "what is new").ok());
  EXPECT_EQ(*ReadFile(path, 1000), "what is new");
  EXPECT_EQ(MappedFile::Open(path)->bytes(), "what is new");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(Files, IsNotHinderedByWhatACrashLeftBehind) {
  const std::string path = Path("snapshot");
  std::ofstream(path + ".new") << "half";
  ASSERT_TRUE(Replace(path, "whole").ok());
  EXPECT_EQ(*ReadFile(path, 1000), "whole");
}

TEST_F(Files, TheNewFileMayHaveAnotherNameAtFirst) {
  const std::string path = Path("rules.yaml");
  std::ofstream(path + ".new") << "a draft";
  std::ofstream(Path(".rules.yaml.headgate-new")) << "half, after a crash";
  ASSERT_TRUE(ReplaceFile(path, [](const auto& write) { write("whole"); },
                          {.temporary = Path(".rules.yaml.headgate-new")})
                  .ok());
  EXPECT_EQ(*ReadFile(path, 1000), "whole");
  EXPECT_EQ(*ReadFile(path + ".new", 1000), "a draft");
  EXPECT_FALSE(std::filesystem::exists(Path(".rules.yaml.headgate-new")));
}

TEST_F(Files, KeepsTheOwnerIfItMay) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to others";
  const std::string path = Path("rules.yaml");
  std::ofstream(path) << "old";
  ASSERT_EQ(::chown(path.c_str(), 1000, 1001), 0);
  ASSERT_TRUE(
      ReplaceFile(path, [](const auto& write) { write("new"); }, {.mode = 0640, .keep_owner = true})
          .ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 1000u);
  EXPECT_EQ(info.st_gid, 1001u);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(Files, LeavesTheOldFileWhereTheNewOneCannotBeWritten) {
  const absl::Status status = Replace(Path("missing/snapshot"), "x");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("cannot create " + Path("missing/snapshot.new")));
}

TEST_F(Files, ChecksWhetherAFileCanBeReplaced) {
  EXPECT_TRUE(CheckReplaceable(Path("new")).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("new.new")));
  EXPECT_TRUE(absl::IsNotFound(CheckReplaceable(Path("missing/new"))));
  std::filesystem::create_directory(Path("directory"));
  for (const char* name : {"directory", "directory/"})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckReplaceable(Path(name)))) << name;
  std::filesystem::create_symlink("directory", Path("link"));
  EXPECT_TRUE(CheckReplaceable(Path("link")).ok());
  EXPECT_TRUE(Replace(Path("link"), "x").ok());
}

TEST_F(Files, TellsAMissingFileFromAnUnreadableOne) {
  EXPECT_TRUE(absl::IsNotFound(ReadFile(Path("none"), 1000).status()));
  EXPECT_TRUE(absl::IsNotFound(MappedFile::Open(Path("none")).status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadFile(Path("."), 1000).status()));
}

TEST_F(Files, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRegularFile(Path("pipe"), 1000).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadRegularFile(Path("none"), 1000).status()));
}

TEST_F(Files, RefusesAFileThatIsTooLong) {
  ASSERT_TRUE(Replace(Path("long"), "12345").ok());
  EXPECT_TRUE(ReadFile(Path("long"), 5).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFile(Path("long"), 4).status()));
}

TEST_F(Files, MapsAnEmptyFile) {
  ASSERT_TRUE(Replace(Path("empty"), "").ok());
  EXPECT_EQ(MappedFile::Open(Path("empty"))->bytes(), "");
}

TEST_F(Files, FollowsSymbolicLinksToWhatMayNotBeThereYet) {
  const std::filesystem::path target = Path("target");
  std::filesystem::create_symlink("relative", Path("link"));
  std::filesystem::create_symlink(target, Path("relative"));
  EXPECT_EQ(*FollowLinks(target), target);
  EXPECT_EQ(*FollowLinks(Path("link")), target);
  std::filesystem::create_symlink("b", Path("a"));
  std::filesystem::create_symlink("a", Path("b"));
  EXPECT_TRUE(absl::IsInvalidArgument(FollowLinks(Path("a")).status()));
}

}  // namespace
}  // namespace headgate::disk
