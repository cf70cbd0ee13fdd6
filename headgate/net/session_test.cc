#include "headgate/net/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/net/framed_session.h"

namespace headgate::net {
namespace session_test {

using namespace std::chrono_literals;

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000);

// One call of a session that answers in order, `at` after the start.
Session::Progress Report(OrderedWait& wait, base::Duration at, uint64_t answered, bool waits) {
  Session::Progress progress{.answered = answered};
  wait.Report(waits, kStart + at, progress);
  return progress;
}

TEST(OrderedWait, AnswersAtOnceDidNotWait) {
  OrderedWait wait;
  const Session::Progress progress = Report(wait, 0ms, 3, false);
  EXPECT_FALSE(progress.waiting());
  EXPECT_FALSE(progress.stop_reading);
  EXPECT_EQ(progress.answered_since, std::nullopt);
}

TEST(OrderedWait, AWaitLastsFromTheBytesToTheAnswers) {
  OrderedWait wait;
  const Session::Progress waiting = Report(wait, 0ms, 0, true);
  EXPECT_EQ(waiting.waiting_since, kStart);
  EXPECT_TRUE(waiting.stop_reading);
  const Session::Progress answered = Report(wait, 6ms, 3, false);
  EXPECT_EQ(answered.answered_since, kStart);
  EXPECT_FALSE(answered.waiting());
  EXPECT_FALSE(answered.stop_reading);
  // The next request did not wait.
  EXPECT_EQ(Report(wait, 100ms, 1, false).answered_since, std::nullopt);
}

TEST(OrderedWait, GoesOnUntilAnAnswerAndThenBeginsAnew) {
  OrderedWait wait;
  Report(wait, 0ms, 0, true);
  EXPECT_EQ(Report(wait, 5ms, 0, true).waiting_since, kStart);
  const Session::Progress next = Report(wait, 10ms, 1, true);
  EXPECT_EQ(next.answered_since, kStart);
  EXPECT_EQ(next.waiting_since, kStart + 10ms);
  EXPECT_EQ(Report(wait, 17ms, 1, false).answered_since, kStart + 10ms);
}

TEST(IndependentRequests, AreReadOnWhileOthersWaitAndEachIsAnsweredWhenItIsThere) {
  Completions completions;
  IndependentFramedSession session(completions);
  const Frame later{.id = 1, .kind = 'l', .payload = "ab"};
  const Frame now{.id = 2, .kind = 'n', .payload = "cd"};
  std::string output;
  const std::string bytes = later.Bytes() + now.Bytes();
  const Session::Progress progress = session.OnBytes(bytes, output, kStart);
  EXPECT_EQ(output, now.Answer());
  EXPECT_FALSE(progress.stop_reading);
  EXPECT_EQ(progress.waiting_since, kStart);
  completions.Complete(0);
  output.clear();
  const Session::Progress woken = session.OnBytes({}, output, kStart + 3ms);
  EXPECT_EQ(output, later.Answer());
  EXPECT_EQ(woken.answered_since, kStart);
  EXPECT_FALSE(woken.waiting());
}

TEST(IndependentRequests, StopReadingWhenTooManyWait) {
  Completions completions;
  IndependentFramedSession session(completions);
  std::string bytes;
  for (size_t i = 0; i <= IndependentFramedSession::kWaitingMax; ++i)
    bytes += Frame{.kind = 'l'}.Bytes();
  std::string output;
  const Session::Progress full = session.OnBytes(bytes, output, kStart);
  EXPECT_TRUE(full.stop_reading);
  EXPECT_EQ(bytes.size() - full.consumed, Frame::kHeadBytes);
  completions.Complete(3);
  const Session::Progress again =
      session.OnBytes(std::string_view(bytes).substr(full.consumed), output, kStart);
  EXPECT_EQ(again.consumed, Frame::kHeadBytes) << "it has room for the next";
  EXPECT_EQ(output, Frame{}.Answer());
}

}  // namespace session_test
}  // namespace headgate::net
