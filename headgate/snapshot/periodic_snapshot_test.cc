#include "headgate/snapshot/periodic_snapshot.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "headgate/observe/log.h"

namespace headgate::snapshot {
namespace periodic_snapshot_test {

using namespace std::chrono_literals;

class PeriodicSnapshotTest : public ::testing::Test {
 protected:
  PeriodicSnapshotTest() { std::filesystem::create_directory(directory_); }
  ~PeriodicSnapshotTest() override {
    periodic_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Ends the write in progress, if there is one, without another one.
  void Restart() {
    periodic_.reset();
    periodic_ = std::make_unique<PeriodicSnapshot>(file_, clock_, 30s);
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("headgate_periodic_snapshot_test_" + std::to_string(::getpid()));
  base::ManualClock system_clock_;
  const base::DisciplinedClock clock_{system_clock_};
  observe::Log log_{{.level_min = observe::Level::kError}, system_clock_};
  store::MemoryStore store_{{.max_buckets = 1000, .secret = {}}};
  SnapshotFile file_{directory_ / "snapshot", store_, log_};
  std::unique_ptr<PeriodicSnapshot> periodic_ =
      std::make_unique<PeriodicSnapshot>(file_, clock_, 30s);
};

TEST_F(PeriodicSnapshotTest, WritesOnceAfterEachInterval) {
  system_clock_.Advance(29s);
  periodic_->Tick();
  Restart();
  EXPECT_EQ(file_.writes_done(), 0u);
  for (uint64_t writes = 1; writes <= 3; ++writes) {
    system_clock_.Advance(30s);
    periodic_->Tick();
    periodic_->Tick();
    Restart();
    EXPECT_EQ(file_.writes_done(), writes);
  }
}

TEST_F(PeriodicSnapshotTest, TheLastWriteComesAfterTheOneInProgress) {
  system_clock_.Advance(30s);
  periodic_->Tick();
  EXPECT_TRUE(periodic_->WriteLast());
  EXPECT_EQ(file_.writes_done(), 2u);
  std::filesystem::remove_all(directory_);
  EXPECT_FALSE(periodic_->WriteLast());
  EXPECT_EQ(file_.writes_failed(), 1u);
}

TEST_F(PeriodicSnapshotTest, WithoutAFileNothingIsWritten) {
  SnapshotFile none("", store_, log_);
  PeriodicSnapshot periodic(none, clock_, 30s);
  system_clock_.Advance(60s);
  periodic.Tick();
  EXPECT_TRUE(periodic.WriteLast());
  EXPECT_EQ(none.writes_done(), 0u);
}

}  // namespace periodic_snapshot_test
}  // namespace headgate::snapshot
