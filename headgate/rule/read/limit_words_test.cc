// load_test.cc and one_liner_test.cc test the combined meaning of the words.
#include "headgate/rule/read/limit_words.h"

#include <gtest/gtest.h>

namespace headgate::rule::read {
namespace limit_words_test {

TEST(MakeLimit, NeverOverflowsOverMaxDelay) {
  // A rate of 2^32 − 1 per nanosecond: a delay of 2^62 ns would hold 2^94 requests.
  LimitWords words{.requests = 4'294'967'295, .period = {.length = base::Duration(1)}};
  words.queue = true;
  words.max_delay = base::kDurationMax;
  const auto limit = MakeLimit(words);
  ASSERT_TRUE(limit.ok());
  EXPECT_EQ(limit->limit.spec().burst, uint64_t{1} << 62);
}

}  // namespace limit_words_test
}  // namespace headgate::rule::read
