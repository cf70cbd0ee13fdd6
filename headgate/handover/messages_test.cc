#include "headgate/handover/messages.h"

#include <gtest/gtest.h>

namespace headgate::handover {
namespace messages_test {

using namespace std::chrono_literals;

SidecarState Full() {
  return {.mode = LiveSetting<share::Mode>{.now = share::Mode::kPassthrough,
                                           .flag = share::Mode::kEnforce},
          .upstream = LiveSetting<std::string>{.now = "http://unix:/run/a b",
                                               .flag = "http://127.0.0.1:9000,127.0.0.1:9001"},
          .addresses = {{.name = "app:9000", .address = "10.0.0.7:9000"},
                        {.name = "app:9000", .address = "[fd00::7]:9000"}},
          .instances = 3,
          .pool = {.at = base::Instant::FromNanos(1'764'119'940'000'000'000),
                   .shares = std::string("a\nb\0c", 5),
                   .found = capacity::FoundCapacity{
                       .per_1000_s = 123'000, .limit = 18, .latency_base = 10ms}}};
}

TEST(HandoverMessages, AnAddressIsReadAsItWasWritten) {
  const AddressMessage message{.name = "listen :0", .bound = *net::ParseEndpoint(":8080")};
  const auto read = ParseAddressMessage(Write(message));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, message);
  for (const auto* text : {"", "listen :0", "listen :0\n", "listen :0\n:8080\n"})
    EXPECT_FALSE(ParseAddressMessage(text).ok()) << text;
}

TEST(HandoverMessages, AStateIsReadAsItWasWritten) {
  for (const SidecarState& state : {SidecarState{}, Full()}) {
    const auto read = ParseSidecarState(Write(state));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, state);
  }
}

// A later version may have more to say.
TEST(HandoverMessages, LinesOfOtherNamesAreIgnored) {
  const auto read = ParseSidecarState("headgate sidecar 1\ncolour green\nmode enforce enforce\n");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->mode->now, share::Mode::kEnforce);
  EXPECT_TRUE(read->pool.shares.empty());
}

TEST(HandoverMessages, AddressesBeyondTheBoundAreIgnored) {
  std::string text = "headgate sidecar 1\n";
  for (size_t i = 0; i < kNamedAddressesMax + 1; ++i) text += "address app:9000 10.0.0.7:9000\n";
  const auto read = ParseSidecarState(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->addresses.size(), kNamedAddressesMax);
}

TEST(HandoverMessages, AStateThatIsWrongIsRefused) {
  for (const auto* lines :
       {"mode enforce", "mode on off", "found 1 2", "found 1 2 3 4", "found 1 4294967296 3",
        "found 1 -2 3", "found 1 2 4611686018427387904", "instances", "instances -1",
        "instances 4294967296", "instances 3 4", "pool 1", "pool 4611686018427387905 0", "pool 1 1",
        "pool -1 0", "pool 1 18446744073709551615", "pool x 0"}) {
    EXPECT_FALSE(ParseSidecarState(std::string("headgate sidecar 1\n") + lines + "\n").ok())
        << lines;
  }
  EXPECT_FALSE(ParseSidecarState("").ok());
  EXPECT_FALSE(ParseSidecarState("headgate sidecar 2\n").ok());
  // A text that is cut off is not read as a shorter one.
  const std::string whole = Write(Full());
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto read = ParseSidecarState(whole.substr(0, size));
    EXPECT_FALSE(read.ok() && *read == Full()) << size;
  }
}

}  // namespace messages_test
}  // namespace headgate::handover
