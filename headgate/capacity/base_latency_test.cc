#include "headgate/capacity/base_latency.h"

#include <gtest/gtest.h>

namespace headgate::capacity {
namespace base_latency_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Measures with requests that take `latency` each, one after the other.
Instant Measure(BaseLatency& base, Duration latency, Instant now) {
  base.Begin(5, 0, now);
  while (!base.is_idle()) {
    const Instant sent = now;
    base.OnSent(sent);
    now += latency;
    base.OnEnd(true, sent, 0, now);
    base.Advance(now);
  }
  return now;
}

TEST(BaseLatency, SamplesOnlyWhatIsSentAfterTheQueueHasDrained) {
  BaseLatency base(1);
  base.OnUpperBound(milliseconds(40), Instant{0});
  base.Begin(5, 20, Instant{0});
  Instant now{0};
  for (uint32_t in_flight = 19; in_flight >= 5; --in_flight) {
    now += milliseconds(2);
    base.OnEnd(true, Instant{0}, in_flight, now);  // requests that waited
  }
  EXPECT_TRUE(base.is_limiting());
  for (int i = 0; i < 200; ++i) {
    const Instant sent = now;
    base.OnSent(sent);
    now += milliseconds(2);
    base.OnEnd(true, sent, 0, now);
  }
  EXPECT_TRUE(base.is_idle());
  EXPECT_EQ(base.value(), milliseconds(2));
}

TEST(BaseLatency, WaitsForSlowAnswersAfterTheLastSampleIsSent) {
  BaseLatency base(1);
  base.OnUpperBound(milliseconds(50), Instant{0});
  base.Begin(200, 0, Instant{0});
  for (int i = 0; i < 200; ++i) base.OnSent(Instant{1});
  EXPECT_FALSE(base.is_limiting()) << "the limit of the measurement is no longer needed";
  EXPECT_FALSE(base.is_idle());
  for (int i = 0; i < 100; ++i) base.OnEnd(true, Instant{1}, 0, Instant{1} + milliseconds(10));
  EXPECT_FALSE(base.is_idle());
  for (int i = 0; i < 100; ++i) base.OnEnd(true, Instant{1}, 0, Instant{1} + milliseconds(90));
  EXPECT_TRUE(base.is_idle());
  EXPECT_EQ(base.value(), milliseconds(50)) << "the mean of fast and slow ones";
}

TEST(BaseLatency, BelievesAFallAtOnceAndARiseTheSecondTime) {
  BaseLatency base(1);
  base.OnUpperBound(milliseconds(10), Instant{0});
  Instant now = Measure(base, milliseconds(5), Instant{0});
  EXPECT_EQ(base.value(), milliseconds(5));
  EXPECT_TRUE(base.IsDue(now)) << "and measures it again with a lower limit";
  now = Measure(base, milliseconds(5), now);
  EXPECT_FALSE(base.IsDue(now));
  now = Measure(base, milliseconds(20), now);
  EXPECT_EQ(base.value(), milliseconds(5)) << "perhaps a pause of the upstream";
  EXPECT_TRUE(base.IsDue(now));
  now = Measure(base, milliseconds(20), now);
  EXPECT_EQ(base.value(), milliseconds(20));
}

TEST(BaseLatency, ARiseThatIsNotConfirmedIsForgotten) {
  BaseLatency base(1);
  base.OnUpperBound(milliseconds(5), Instant{0});
  Instant now = Measure(base, milliseconds(20), Instant{0});
  now = Measure(base, milliseconds(5), now);
  EXPECT_EQ(base.value(), milliseconds(5));
  now = Measure(base, milliseconds(20), now);
  EXPECT_EQ(base.value(), milliseconds(5));
}

TEST(BaseLatency, GivesUpWithoutEnoughAnswers) {
  BaseLatency base(1);
  base.OnUpperBound(milliseconds(5), Instant{0});
  base.Begin(5, 20, Instant{0});
  base.Advance(Instant{0} + seconds(5));
  EXPECT_TRUE(base.is_idle()) << "the queue did not drain";
  base.Begin(5, 0, Instant{0} + seconds(5));
  base.Advance(Instant{0} + seconds(10));
  base.Advance(Instant{0} + seconds(11));
  EXPECT_TRUE(base.is_idle()) << "nothing was sent";
  EXPECT_EQ(base.value(), milliseconds(5));
}

TEST(BaseLatency, IsDueAboutEveryThirtySeconds) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    BaseLatency base(seed);
    base.OnUpperBound(milliseconds(5), Instant{0});
    const Instant now = Measure(base, milliseconds(5), Instant{0});
    EXPECT_FALSE(base.IsDue(now + seconds(25)));
    EXPECT_TRUE(base.IsDue(now + seconds(35)));
  }
}

}  // namespace base_latency_test
}  // namespace headgate::capacity
