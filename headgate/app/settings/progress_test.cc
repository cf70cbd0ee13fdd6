#include "headgate/app/settings/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace headgate::app {
namespace progress_test {

// Text that another thread writes, and a wait for it.
class Written : public std::stringbuf {
 public:
  void WaitForLines(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_ >= count; });
  }

 private:
  int sync() override {
    const std::lock_guard lock(mutex_);
    ++lines_;
    changed_.notify_one();
    return 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int lines_ = 0;
};

TEST(Progress, ShowsEachSecondOnATerminal) {
  std::ostringstream out;
  Written written;
  std::ostream err(&written);
  {
    const Console console{.out = out, .err = err, .terminal = true};
    const Progress progress(console, "reading the rules", std::chrono::milliseconds(1));
    written.WaitForLines(2);
  }
  EXPECT_THAT(written.str(), ::testing::StartsWith("   1s  reading the rules\n"
                                                   "   2s  reading the rules\n"));
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, ShowsNothingIfTheWorkIsShort) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.out = out, .err = err, .terminal = true};
  { const Progress progress(console, "reading the rules", std::chrono::hours(1)); }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, ShowsNothingIfThereIsNoTerminal) {
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.out = out, .err = err};
  // With a thread, it would write without a pause.
  { const Progress progress(console, "reading the rules", base::Duration(0)); }
  EXPECT_EQ(err.str(), "");
}

}  // namespace progress_test
}  // namespace headgate::app
