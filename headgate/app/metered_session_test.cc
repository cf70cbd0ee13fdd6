#include "headgate/app/metered_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::app {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Each call takes as long, and answers as many requests, as the test says.
struct Turn {
  milliseconds takes{0};
  uint64_t answers = 0;
  bool waiting = false;
};

struct Metered {
  class Session final : public net::Session {
   public:
    explicit Session(Metered& metered) : metered_(metered) {}
    Progress OnBytes(std::span<const char>, std::string&, base::Instant) override {
      metered_.clock.Advance(metered_.turn.takes);
      metered_.answered += metered_.turn.answers;
      return {.waiting = metered_.turn.waiting};
    }

   private:
    Metered& metered_;
  };

  void Ask(const Turn& next) {
    turn = next;
    std::string output;
    session.OnBytes({}, output, base::Instant{});
  }
  void ExpectSeconds(std::string_view name, std::string_view sum, std::string_view count) {
    const std::string text = metrics.Render();
    EXPECT_THAT(text, HasSubstr(std::string(name) + "_sum{front=\"http\"} " + std::string(sum) + "\n"));
    EXPECT_THAT(text, HasSubstr(std::string(name) + "_count{front=\"http\"} " + std::string(count) + "\n"));
  }

  base::ManualClock clock;
  observe::Metrics metrics{{}};
  uint64_t answered = 0;
  Turn turn;
  const Meter meter{
      .metrics = metrics, .front = metrics.AddFront("http"), .worker = 0, .clock = clock, .answered = [this] {
        return answered;
      }};
  MeteredSession session{std::make_unique<Session>(*this), meter};
};

TEST(MeteredSession, WhatIsAnsweredAtOnceDidNotWait) {
  Metered metered;
  metered.Ask({.takes = milliseconds(2), .answers = 3});
  metered.Ask({.takes = milliseconds(1)});  // half a request
  metered.ExpectSeconds("headgate_batch_seconds", "0.002", "1");
  metered.ExpectSeconds("headgate_wait_seconds", "0", "0");
}

TEST(MeteredSession, AWaitLastsFromTheBytesToTheAnswers) {
  Metered metered;
  metered.Ask({.takes = milliseconds(1), .waiting = true});
  metered.clock.Advance(milliseconds(5));
  metered.Ask({.takes = milliseconds(2), .answers = 3});
  metered.ExpectSeconds("headgate_batch_seconds", "0.002", "1");
  metered.ExpectSeconds("headgate_wait_seconds", "0.008", "1");
  // The next request has not waited.
  metered.clock.Advance(milliseconds(100));
  metered.Ask({.takes = milliseconds(1), .answers = 1});
  metered.ExpectSeconds("headgate_wait_seconds", "0.008", "1");
}

TEST(MeteredSession, WhatWaitsAgainGoesOnWaitingAndWhatFollowsAnAnswerWaitsAnew) {
  Metered metered;
  metered.Ask({.waiting = true});
  metered.clock.Advance(milliseconds(5));
  metered.Ask({.waiting = true});
  metered.clock.Advance(milliseconds(5));
  metered.Ask({.answers = 1, .waiting = true});
  metered.ExpectSeconds("headgate_wait_seconds", "0.01", "1");
  metered.clock.Advance(milliseconds(7));
  metered.Ask({.answers = 1});
  metered.ExpectSeconds("headgate_wait_seconds", "0.017", "2");
}

}  // namespace
}  // namespace headgate::app
