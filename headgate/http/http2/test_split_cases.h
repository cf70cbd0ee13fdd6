// Replays each case of a table in two parts, split at every byte. Long cases are split in fewer
// places.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace headgate::http::http2 {

// `replay(test, split)` returns the result of the case, which must be `test.expected` for each
// split.
template <typename Case, typename Replay>
void CheckSplitCases(const std::vector<Case>& cases, const Replay& replay) {
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(replay(test, test.bytes.size()), test.expected);
    if (::testing::Test::HasNonfatalFailure()) continue;
    const size_t step = 1 + test.bytes.size() / 300;
    for (size_t split = 0; split < test.bytes.size(); split += step) {
      ASSERT_EQ(replay(test, split), test.expected) << "split at " << split;
    }
  }
}

}  // namespace headgate::http::http2
