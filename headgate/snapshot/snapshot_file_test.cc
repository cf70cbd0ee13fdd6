// Counted requests survive a restart. A file that cannot be read is kept aside, logged and counted,
// and does not prevent the start.
#include "headgate/snapshot/snapshot_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "headgate/base/clock.h"
#include "headgate/files/files.h"

namespace headgate::snapshot {
namespace snapshot_file_test {

using base::Instant;
using ::testing::HasSubstr;
using RestoreResult = SnapshotFile::RestoreResult;

constexpr Instant kNow = Instant::FromNanos(1'790'000'000'000'000'000);

struct Process {
  explicit Process(const std::string& path) : file(path, store, log) { file.Restore(kNow); }

  // One request of a bucket that holds five for an hour; what is left.
  uint64_t Take() {
    const auto limit = store.limits().Intern(
        *algorithm::Limit::Make({.requests = 5, .period = std::chrono::hours(1)}));
    const auto key = base::HashBytes(store.hash_secret(), base::KeyKind::kRaw, "ann");
    const store::TakeRequest request{.key = key, .limit = limit->get()};
    algorithm::Decision decision;
    store.Take({&request, 1}, {&decision, 1}, kNow);
    return decision.remaining;
  }

  base::ManualClock clock;
  std::ostringstream lines;
  observe::Log log{{}, clock, std::make_shared<spdlog::sinks::ostream_sink_mt>(lines)};
  store::MemoryStore store{{.max_buckets = 1000, .secret = {}}};
  SnapshotFile file;
};

class SnapshotFileTest : public ::testing::Test {
 protected:
  SnapshotFileTest() { std::filesystem::create_directory(directory_); }
  ~SnapshotFileTest() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("headgate_snapshot_file_test_" + std::to_string(::getpid()));
  const std::string path_ = directory_ / "snapshot";
};

TEST_F(SnapshotFileTest, CarriesWhatWasConsumedOverARestart) {
  Process before(path_);
  EXPECT_EQ(before.file.restored(), RestoreResult::kAbsent);
  EXPECT_EQ(before.Take(), 4u);
  EXPECT_EQ(before.Take(), 3u);
  ASSERT_TRUE(before.file.Write(kNow));
  EXPECT_EQ(before.file.writes_done(), 1u);

  Process after(path_);
  EXPECT_EQ(after.file.restored(), RestoreResult::kRestored);
  EXPECT_EQ(after.file.written_at(), kNow);
  EXPECT_EQ(after.Take(), 2u);
}

TEST_F(SnapshotFileTest, KeepsATruncatedFileAsideAndStartsEmpty) {
  Process before(path_);
  before.Take();
  ASSERT_TRUE(before.file.Write(kNow));
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);

  Process after(path_);
  EXPECT_EQ(after.file.restored(), RestoreResult::kCorrupt);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(std::filesystem::exists(path_ + ".refused"));
  EXPECT_THAT(after.lines.str(), HasSubstr("snapshot.refused"));
  EXPECT_EQ(after.Take(), 4u);
  EXPECT_TRUE(after.file.Write(kNow));
}

TEST_F(SnapshotFileTest, RefusesAFileOfANewerVersion) {
  Process before(path_);
  ASSERT_TRUE(before.file.Write(kNow));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(8);  // the version stands behind the magic
  file.put('\x7f');
  file.close();
  EXPECT_EQ(Process(path_).file.restored(), RestoreResult::kNewer);
}

TEST_F(SnapshotFileTest, SaysWhenItCannotWrite) {
  Process run((directory_ / "missing" / "snapshot").string());
  EXPECT_FALSE(run.file.Write(kNow));
  EXPECT_EQ(run.file.writes_failed(), 1u);
  EXPECT_THAT(run.lines.str(), HasSubstr("snapshot.write_failed"));
}

TEST_F(SnapshotFileTest, NeverOverwritesWhatWasRefusedBefore) {
  for (int i = 0; i < 3; ++i) {
    std::ofstream(path_) << "corrupt " << i;
    EXPECT_EQ(Process(path_).file.restored(), RestoreResult::kCorrupt);
  }
  EXPECT_EQ(*files::ReadFile(path_ + ".refused", 100), "corrupt 0");
  EXPECT_EQ(*files::ReadFile(path_ + ".refused.2", 100), "corrupt 1");
  EXPECT_EQ(*files::ReadFile(path_ + ".refused.3", 100), "corrupt 2");
}

TEST_F(SnapshotFileTest, LeavesADirectoryWhereItIs) {
  std::filesystem::create_directory(path_);
  Process run(path_);
  EXPECT_EQ(run.file.restored(), RestoreResult::kUnreadable);
  EXPECT_TRUE(std::filesystem::is_directory(path_));
  EXPECT_FALSE(run.file.Write(kNow));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(SnapshotFileTest, ChecksItsPathBeforeTheStart) {
  const auto problem = [](const std::string& path) {
    return std::string(SnapshotFile::Check(path).message());
  };
  EXPECT_EQ(problem(""), "");
  EXPECT_EQ(problem(path_), "");
  EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "a check leaves nothing behind";
  std::ofstream(path_) << "something";
  EXPECT_EQ(problem(path_), "");
  EXPECT_EQ(*files::ReadFile(path_, 100), "something");
  EXPECT_THAT(problem(directory_), HasSubstr("is a directory"));
  EXPECT_THAT(problem("/dev/null"), HasSubstr("is not a regular file"));
  EXPECT_THAT(problem(directory_ / "missing" / "snapshot"), HasSubstr("No such file or directory"));
  EXPECT_TRUE(absl::IsNotFound(SnapshotFile::Check(directory_ / "missing" / "snapshot")));
  EXPECT_THAT(problem(path_ + "/below"), HasSubstr("Not a directory"));
}

TEST_F(SnapshotFileTest, DoesNothingWithoutAPath) {
  Process run("");
  EXPECT_TRUE(run.file.Write(kNow));
  EXPECT_EQ(run.file.writes_done(), 0u);
  EXPECT_EQ(run.lines.str(), "");
}

}  // namespace snapshot_file_test
}  // namespace headgate::snapshot
