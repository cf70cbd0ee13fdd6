#include "headgate/watch/file/file_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "headgate/watch/file/temp_directory.h"

namespace headgate::watch::file {
namespace file_journal_test {

using ::testing::ElementsAre;

// The calls of the journal, in their order: the program's own functions take the place of those of
// the C library. One list for each thread, because other tests of this program call them on
// several.
thread_local std::vector<std::string> calls;

std::string NameOf(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).filename();
}

extern "C" int fsync(int fd) {
  calls.push_back("sync " + NameOf(fd));
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  calls.push_back("sync " + NameOf(fd));
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int flock(int fd, int operation) noexcept {
  calls.push_back((operation == LOCK_UN ? "unlock " : "lock ") + NameOf(fd));
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

class FileJournalTest : public ::testing::Test {
 protected:
  absl::Status Put(FileJournal& journal, const std::string& id, const std::string& document,
                   const std::string& more = "") {
    absl::Status status = absl::UnknownError("not called");
    const std::string text =
        fmt::format(R"({{"id":"{}","document":"{}","more":"{}"}})", id, document, more);
    journal.Put({.id = id, .document = document, .text = text},
                [&](const absl::Status& noted) { status = noted; });
    return status;
  }
  std::vector<std::string> Ids(FileJournal& journal, std::string_view document = "",
                               size_t count = 100) {
    std::vector<std::string> ids;
    journal.Read(document, count, [&](const absl::StatusOr<std::vector<rule::Note>>& notes) {
      EXPECT_TRUE(notes.ok()) << notes.status();
      for (const rule::Note& note : *notes) ids.push_back(note.id);
    });
    return ids;
  }

  TempDirectory temp_;
  const std::string path_ = temp_ / "audit.log";
};

TEST_F(FileJournalTest, ANoteAndTheNameOfItsFileAreOnTheDiskBeforeItIsReported) {
  FileJournal journal(path_, {.file_bytes_max = 200, .files_max = 3});
  const std::string folder = std::filesystem::path(temp_.path()).filename();
  const auto calls_of_put = [&] {
    calls.clear();
    EXPECT_TRUE(Put(journal, "1", "a", std::string(100, 'x')).ok());
    return calls;
  };
  EXPECT_THAT(calls_of_put(), ElementsAre("lock audit.log", "sync audit.log", "sync " + folder,
                                          "unlock audit.log"));
  // Too large for one file: the second one is new, and the first one has a new name.
  EXPECT_THAT(calls_of_put(), ElementsAre("lock audit.log", "lock audit.log", "sync audit.log",
                                          "sync " + folder, "unlock audit.log"));
}

TEST_F(FileJournalTest, ANoteInAFileThatExistsNeedsNoSyncOfTheDirectory) {
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "1", "a").ok());
  calls.clear();
  EXPECT_TRUE(Put(journal, "2", "a").ok());
  EXPECT_THAT(calls, ElementsAre("lock audit.log", "sync audit.log", "unlock audit.log"));
}

TEST_F(FileJournalTest, ReadsTheNewestFirst) {
  FileJournal journal(path_);
  EXPECT_THAT(Ids(journal), ElementsAre());
  EXPECT_TRUE(Put(journal, "1", "a").ok());
  EXPECT_TRUE(Put(journal, "2", "b").ok());
  EXPECT_TRUE(Put(journal, "3", "a").ok());
  EXPECT_THAT(Ids(journal), ElementsAre("3", "2", "1"));
  EXPECT_THAT(Ids(journal, "a"), ElementsAre("3", "1"));
  EXPECT_THAT(Ids(journal, "", 1), ElementsAre("3"));
  FileJournal another(path_);
  EXPECT_THAT(Ids(another), ElementsAre("3", "2", "1"));
}

TEST_F(FileJournalTest, ANameIsFoundHoweverItIsEscaped) {
  std::ofstream(path_) << R"({"id":"1","document":"a\f"})" << '\n'
                       << R"({"id":"2","document":"\u0061\u000C"})" << '\n'
                       << R"({"id":"3","document":"a"})" << '\n';
  FileJournal journal(path_);
  EXPECT_THAT(Ids(journal, "a\f"), ElementsAre("2", "1"));
}

TEST_F(FileJournalTest, ALaterLineWithTheSameIdCounts) {
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "1", "a", "begun").ok());
  EXPECT_TRUE(Put(journal, "1", "a", "done").ok());
  journal.Read("", 10, [](const absl::StatusOr<std::vector<rule::Note>>& notes) {
    ASSERT_EQ(notes->size(), 1u);
    EXPECT_THAT((*notes)[0].text, ::testing::HasSubstr("done"));
  });
}

TEST_F(FileJournalTest, ALineThatACrashCutOffIsSkippedAndHarmsNoOther) {
  {
    FileJournal journal(path_);
    EXPECT_TRUE(Put(journal, "1", "a").ok());
  }
  std::ofstream(path_, std::ios::app) << R"({"id":"2","docum)";
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "3", "a").ok());
  EXPECT_THAT(Ids(journal), ElementsAre("3", "1"));
}

TEST_F(FileJournalTest, BeginsAnotherFileWhenOneIsFullAndRemovesTheOldest) {
  FileJournal journal(path_, {.file_bytes_max = 100, .files_max = 3});
  for (int i = 1; i <= 9; ++i) EXPECT_TRUE(Put(journal, std::to_string(i), "a").ok());
  EXPECT_TRUE(std::filesystem::exists(path_ + ".2"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  const std::vector<std::string> ids = Ids(journal);
  EXPECT_EQ(ids.front(), "9");
  EXPECT_TRUE(std::is_sorted(ids.rbegin(), ids.rend()));
  EXPECT_LT(ids.size(), 9u);
  EXPECT_GE(ids.size(), 5u);
}

TEST_F(FileJournalTest, ALinkStaysWhenAnotherFileBegins) {
  std::filesystem::create_directory(temp_ / "logs");
  std::filesystem::create_symlink("logs/headgate.log", path_);
  FileJournal journal(path_, {.file_bytes_max = 100, .files_max = 2});
  for (int i = 1; i <= 6; ++i) EXPECT_TRUE(Put(journal, std::to_string(i), "a").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".1"));
  EXPECT_TRUE(std::filesystem::exists(temp_ / "logs/headgate.log.1"));
  EXPECT_EQ(Ids(journal).front(), "6");
}

TEST_F(FileJournalTest, AFailedWriteRemovesNothingThatAnotherProcessWrote) {
  FileJournal one(path_);
  FileJournal other(path_);
  EXPECT_TRUE(Put(one, "1", "a").ok());
  EXPECT_TRUE(Put(other, "2", "a").ok());
  EXPECT_TRUE(Put(other, "3", "a").ok());
  const auto size = std::filesystem::file_size(path_);
  // As on a full disk, only a part of the line fits.
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit full { .rlim_cur = size + 10, .rlim_max = before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status failed = Put(one, "4", "a");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_EQ(std::filesystem::file_size(path_), size);
  EXPECT_THAT(Ids(one), ElementsAre("3", "2", "1"));
}

TEST_F(FileJournalTest, TwoProcessesBeginAnotherFileTogether) {
  const FileJournal::Options small{.file_bytes_max = 100, .files_max = 30};
  FileJournal one(path_, small);
  FileJournal other(path_, small);
  std::vector<std::string> expected;
  for (int i = 10; i < 30; ++i) {
    EXPECT_TRUE(Put(i % 3 == 0 ? one : other, std::to_string(i), "a").ok());
    expected.insert(expected.begin(), std::to_string(i));
  }
  EXPECT_EQ(Ids(one), expected);
  for (const auto& file : std::filesystem::directory_iterator(temp_.path()))
    EXPECT_LE(file.file_size(), small.file_bytes_max) << file.path();
}

TEST_F(FileJournalTest, DoesNotWaitForEverForALock) {
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "1", "a").ok());
  const int held = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  EXPECT_THAT(std::string(Put(journal, "2", "a").message()), ::testing::HasSubstr("its lock"));
  ::close(held);
  EXPECT_TRUE(Put(journal, "3", "a").ok());
  EXPECT_THAT(Ids(journal), ElementsAre("3", "1"));
}

TEST_F(FileJournalTest, AFileThatIsMovedOrRemovedIsMadeAgain) {
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "1", "a").ok());
  std::filesystem::rename(path_, path_ + ".moved");
  EXPECT_TRUE(Put(journal, "2", "a").ok());
  std::filesystem::remove(path_);
  EXPECT_TRUE(Put(journal, "3", "a").ok());
  EXPECT_THAT(Ids(journal), ElementsAre("3"));
}

TEST_F(FileJournalTest, ANamedPipeInItsPlaceHoldsNobodyUp) {
  FileJournal journal(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(Put(journal, "1", "a").ok());
  absl::Status status;
  journal.Read("", 10, [&](const auto& notes) { status = notes.status(); });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(FileJournalTest, OnlyItsOwnerReadsIt) {
  FileJournal journal(path_);
  EXPECT_TRUE(Put(journal, "1", "a").ok());
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileJournalTest, SaysWhyItCannotBeWritten) {
  EXPECT_TRUE(FileJournal::Check(path_).ok());
  EXPECT_TRUE(absl::IsUnavailable(FileJournal::Check(temp_ / "missing/audit.log")));
  EXPECT_FALSE(FileJournal::Check("/dev/null").ok());
  EXPECT_FALSE(FileJournal::Check(temp_.path()).ok());
}

}  // namespace file_journal_test
}  // namespace headgate::watch::file
