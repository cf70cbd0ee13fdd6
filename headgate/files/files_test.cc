#include "headgate/files/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "headgate/net/file_descriptor.h"

namespace headgate::files {
namespace files_test {

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
  EXPECT_TRUE(absl::IsInvalidArgument(CheckReplaceable(Path("link"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Replace(Path("link"), "x")));
}

TEST_F(Files, ReplacesTheTargetOfALink) {
  std::filesystem::create_directory(Path("elsewhere"));
  std::filesystem::create_symlink("elsewhere/target", Path("link"));
  for (const std::string text : {"first", "second"}) {
    EXPECT_TRUE(CheckReplaceable(Path("link")).ok());
    ASSERT_TRUE(Replace(Path("link"), text).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
    EXPECT_EQ(*ReadFile(Path("elsewhere/target"), 1000), text);
  }
  EXPECT_FALSE(std::filesystem::exists(Path("elsewhere/target.new")));
}

TEST_F(Files, ReplacesOnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", Path("link"));
  for (const char* name : {"pipe", "link"}) {
    EXPECT_EQ(CheckReplaceable(Path(name)).message(), Path(name) + " is not a regular file");
    EXPECT_EQ(Replace(Path(name), "x").message(), Path(name) + " is not a regular file");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
  EXPECT_FALSE(std::filesystem::exists(Path("pipe.new")));
}

TEST_F(Files, AFailedWriteLeavesTheOldFileAndNoNewOne) {
  const std::string path = Path("snapshot");
  ASSERT_TRUE(Replace(path, "old").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit short_files { .rlim_cur = 10, .rlim_max = before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &short_files), 0);
  const absl::Status failed = Replace(path, "longer than that");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(failed.message(), "cannot write " + path + ": File too large");
  EXPECT_EQ(*ReadFile(path, 1000), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(Files, WritesOutputIntoAPipe) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", Path("link"));
  const net::FileDescriptor reader(::open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  for (const char* name : {"pipe", "link"}) {
    ASSERT_TRUE(CheckOutput(Path(name)).ok());
    ASSERT_TRUE(WriteOutput(Path(name), "picture").ok());
    char got[100];
    ASSERT_EQ(::read(reader.get(), got, sizeof(got)), 7);
    EXPECT_EQ(std::string_view(got, 7), "picture");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
}

// As /dev/stdout, which is a link to /proc/self/fd/1.
TEST_F(Files, WritesOutputBehindWhatAnOpenFileHasGot) {
  const net::FileDescriptor file(::open(Path("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), "report ", 7), 7);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(file.get()), Path("link"));
  ASSERT_TRUE(CheckOutput(Path("link")).ok());
  ASSERT_TRUE(WriteOutput(Path("link"), "picture").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  char got[100];
  const net::FileDescriptor again(::open(Path("log").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::read(again.get(), got, sizeof(got)), 14);
  EXPECT_EQ(std::string_view(got, 14), "report picture");
  // A file that replaced it would not be the open one.
  struct stat open {};
  struct stat named {};
  ASSERT_EQ(::fstat(file.get(), &open), 0);
  ASSERT_EQ(::stat(Path("log").c_str(), &named), 0);
  EXPECT_EQ(open.st_ino, named.st_ino);
}

TEST_F(Files, OutputReplacesAFileAndKeepsItsMode) {
  std::ofstream(Path("old")) << "a long picture";
  std::filesystem::permissions(Path("old"), std::filesystem::perms(0640));
  for (const char* name : {"old", "new"}) {
    ASSERT_TRUE(CheckOutput(Path(name)).ok());
    ASSERT_TRUE(WriteOutput(Path(name), "picture").ok());
    EXPECT_EQ(*ReadFile(Path(name), 1000), "picture");
  }
  EXPECT_EQ(std::filesystem::status(Path("old")).permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(std::filesystem::status(Path("new")).permissions(), std::filesystem::perms(0644));
}

TEST_F(Files, OutputGoesToNoDirectorySocketOrMissingFolder) {
  for (const auto write :
       {&CheckOutput, +[](const std::string& path) { return WriteOutput(path, "picture"); }}) {
    EXPECT_EQ(write(Path("")).message(), Path("") + " is a directory");
    EXPECT_TRUE(absl::IsNotFound(write(Path("missing/picture"))));
  }
  const net::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = Path("socket");
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(CheckOutput(path).message(), path + " is not a regular file");
  EXPECT_EQ(WriteOutput(path, "picture").message(), path + " is not a regular file");
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

}  // namespace files_test
}  // namespace headgate::files
