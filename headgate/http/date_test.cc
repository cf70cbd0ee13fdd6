#include "headgate/http/date.h"

#include <gtest/gtest.h>

#include <string>

namespace headgate::http {
namespace date_test {

TEST(HttpDate, IsTheImfFixdate) {
  const auto date = [](int64_t seconds) {
    const auto text = Date(base::WallTime::FromNanos(seconds * 1'000'000'000 + 999'999'999));
    return std::string(text.begin(), text.end());
  };
  EXPECT_EQ(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date(951'827'696), "Tue, 29 Feb 2000 12:34:56 GMT");
  EXPECT_EQ(date(4'102'444'799), "Thu, 31 Dec 2099 23:59:59 GMT");
}

}  // namespace date_test
}  // namespace headgate::http
