#include "headgate/share/share_options.h"

#include <chrono>
#include <string>

namespace headgate::share {
namespace share_options_test {

using std::chrono::seconds;
using ::testing::HasSubstr;

ShareOptions Fixed() { return {.pool = {.capacity = 40, .cycle = seconds(10)}}; }
ShareOptions Auto() {
  return {.pool = {.cycle = seconds(10)}, .find_capacity = capacity::CapacityOptions{}};
}
std::string ProblemOf(const ShareOptions& options) {
  return std::string(options.Validate().message());
}

TEST(ShareOptions, ACapacityIsANumberOrAuto) {
  EXPECT_EQ(ProblemOf(Fixed()), "");
  EXPECT_EQ(ProblemOf(Auto()), "");
  ShareOptions none = Fixed();
  none.pool.capacity = 0;
  EXPECT_EQ(ProblemOf(none), "a pool needs a capacity: a number per cycle, or auto");
  ShareOptions both = Auto();
  both.pool.capacity = 40;
  EXPECT_EQ(ProblemOf(both), "a pool's capacity is either a number or auto, not 40 and auto");
}

TEST(ShareOptions, ThePartsAreCheckedToo) {
  ShareOptions cycle = Fixed();
  cycle.pool.cycle = seconds(0);
  EXPECT_THAT(ProblemOf(cycle), HasSubstr("cycle must be longer than 0"));
  ShareOptions limit = Auto();
  limit.find_capacity->limit_min = 1;
  EXPECT_THAT(ProblemOf(limit), HasSubstr("requests in flight"));
}

TEST(ShareOptions, ACapacityThatIsFoundFitsIntoACycle) {
  ShareOptions options = Auto();
  options.pool.cycle = std::chrono::hours(25);
  EXPECT_THAT(ProblemOf(options), HasSubstr("from 1 millisecond to 1 day"));
  options.pool.cycle = std::chrono::hours(1);  // 3600 s · 10^6/s is below 2^32
  EXPECT_EQ(ProblemOf(options), "");
  options.pool.cycle = seconds(4295);
  EXPECT_THAT(ProblemOf(options), HasSubstr("per_second_max allows 1000000 per second"));
  options.find_capacity->per_second_max = 999'000;
  EXPECT_EQ(ProblemOf(options), "");
}

TEST(ShareOptions, WeightsNameEachClientOnce) {
  ShareOptions options = Fixed();
  options.weights = {{"A", 3}, {"B", 1024}};
  EXPECT_EQ(ProblemOf(options), "");
  options.weights = {{"A", 0}};
  EXPECT_EQ(ProblemOf(options), "the weight of client \"A\" is from 1 to 1024, not 0");
  options.weights = {{"A", 1025}};
  EXPECT_EQ(ProblemOf(options), "the weight of client \"A\" is from 1 to 1024, not 1025");
  options.weights = {{"A", 3}, {"A", 3}};
  EXPECT_EQ(ProblemOf(options), "client \"A\" has two weights");
  options.weights = {{"", 3}};
  EXPECT_EQ(ProblemOf(options), "a weight needs a client's name");
}

TEST(ShareOptions, NamesAreBounded) {
  ShareOptions options = Fixed();
  options.client_id_bytes_max = 0;
  EXPECT_EQ(ProblemOf(options), "client_id_bytes_max is from 1 to 1024, not 0");
  options.client_id_bytes_max = 1025;
  EXPECT_EQ(ProblemOf(options), "client_id_bytes_max is from 1 to 1024, not 1025");
  options.client_id_bytes_max = 5;
  EXPECT_EQ(ProblemOf(options), "");
  options.anonymous = std::string(1025, 'x');
  EXPECT_EQ(ProblemOf(options),
            "the name of the anonymous client has from 1 to 1024 bytes, not 1025");
  options.anonymous = "";
  EXPECT_EQ(ProblemOf(options), "the name of the anonymous client has from 1 to 1024 bytes, not 0");
}

}  // namespace share_options_test
}  // namespace headgate::share
