#include "headgate/net/unix_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "headgate/net/socket_address.h"

namespace headgate::net {
namespace unix_listener_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;

struct UnixListener : ::testing::Test {
  UnixListener() {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-unix-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/s";
  }
  ~UnixListener() override { std::filesystem::remove_all(folder); }

  // The file type and the permissions, of a symbolic link too.
  mode_t Mode() {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_mode : 0;
  }
  // A socket that is bound to the path by another program.
  FileDescriptor Bind(int type) {
    FileDescriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    const SocketAddress address = UnixSocket(path);
    EXPECT_EQ(::bind(socket.get(), address.get(), address.size), 0);
    return socket;
  }

  std::string folder;
  std::string path;
};

TEST_F(UnixListener, ItsFileHasTheMode) {
  const auto listener = ListenOnUnix(path, {.backlog = 1, .mode = 0600});
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(Mode(), S_IFSOCK | 0600u);
}

TEST_F(UnixListener, ReplacesASocketOfAnyTypeOnWhichNobodyAnswers) {
  for (const int left_behind : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
    Bind(left_behind);
    const auto listener = ListenOnUnix(path, {.type = SOCK_SEQPACKET, .backlog = 1});
    EXPECT_TRUE(listener.ok()) << listener.status();
    std::filesystem::remove(path);
  }
}

TEST_F(UnixListener, ASocketThatAnswersStays) {
  for (const int in_use : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
    const FileDescriptor other = Bind(in_use);
    if (in_use != SOCK_DGRAM) {
      ASSERT_EQ(::listen(other.get(), 1), 0);
    }
    const SocketFile before(path);
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
      const auto listener = ListenOnUnix(path, {.type = type, .backlog = 1});
      ASSERT_TRUE(absl::IsAlreadyExists(listener.status())) << listener.status();
      EXPECT_THAT(std::string(listener.status().message()), HasSubstr("another process has it"));
    }
    EXPECT_TRUE(before.IsThere());
    std::filesystem::remove(path);
  }
}

TEST_F(UnixListener, AnyOtherFileStays) {
  const auto refused = [&] {
    const SocketFile before(path);
    const auto listener = ListenOnUnix(path, {.backlog = 1, .mode = 0600});
    EXPECT_TRUE(absl::IsAlreadyExists(listener.status())) << listener.status();
    EXPECT_THAT(std::string(listener.status().message()),
                EndsWith("the file there is not a socket"));
    EXPECT_TRUE(before.IsThere());
    std::filesystem::remove(path);
  };
  const std::string target = folder + "/target";
  std::ofstream(target) << "precious";
  std::filesystem::copy(target, path);
  refused();
  std::filesystem::create_symlink(target, path);
  refused();
  std::filesystem::create_symlink(folder + "/nothing", path);
  refused();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  refused();
  std::filesystem::create_directory(path);
  refused();
  EXPECT_EQ(std::filesystem::file_size(target), 8u);
}

TEST_F(UnixListener, AnErrorLeavesNoFile) {
  // A backlog and a mode cannot fail here, so the type does: nobody listens on datagrams.
  const auto listener = ListenOnUnix(path, {.type = SOCK_DGRAM, .backlog = 1});
  EXPECT_FALSE(listener.ok());
  EXPECT_EQ(Mode(), 0u);
}

TEST_F(UnixListener, APathThatIsTooLongIsRefused) {
  const auto listener = ListenOnUnix(folder + "/" + std::string(107, 'a'), {.backlog = 1});
  EXPECT_TRUE(absl::IsInvalidArgument(listener.status()));
  EXPECT_THAT(std::string(listener.status().message()), HasSubstr("at most 107 bytes"));
}

TEST_F(UnixListener, RemovesOnlyItsOwnFile) {
  const FileDescriptor first = Bind(SOCK_STREAM);
  const SocketFile file(path);
  EXPECT_TRUE(file.is_socket());
  EXPECT_TRUE(file.belongs_to_this_user());
  std::filesystem::remove(path);
  std::ofstream(path) << "precious";
  EXPECT_FALSE(file.IsThere());
  file.Remove();
  EXPECT_EQ(Mode() & S_IFMT, static_cast<mode_t>(S_IFREG));
  const SocketFile nothing(folder + "/nothing");
  EXPECT_FALSE(nothing.IsThere());
  EXPECT_FALSE(nothing.is_socket());
  EXPECT_FALSE(nothing.belongs_to_this_user());
}

}  // namespace unix_listener_test
}  // namespace headgate::net
