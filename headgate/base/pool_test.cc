#include "headgate/base/pool.h"

#include <gtest/gtest.h>

#include <string>

namespace headgate::base {
namespace pool_test {

TEST(Pool, GivesWhatWasReleasedBeforeItMakesMore) {
  Pool<std::string> pool;
  std::string& first = pool.Take();
  std::string& second = pool.Take();
  EXPECT_NE(&first, &second);
  first = "kept";
  pool.Release(first);
  std::string& again = pool.Take();
  EXPECT_EQ(&again, &first);
  EXPECT_EQ(again, "kept");
  EXPECT_NE(&pool.Take(), &second);
}

}  // namespace pool_test
}  // namespace headgate::base
