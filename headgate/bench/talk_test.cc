#include "headgate/bench/talk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate::bench {
namespace talk_test {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// A connection of the load, without its server.
struct Side {
  std::unique_ptr<Talk> talk = MakeTalk({.http = true, .domain = "edge", .credential = "c"});
  std::vector<std::string> answers{};

  std::string Ask(uint64_t key) const {
    std::string output;
    talk->Ask(key, output);
    return output;
  }
  absl::Status Take(std::string_view bytes) {
    return talk->Take(bytes, [&](const Answer& answer) {
      answers.push_back(answer.kind == Answer::Kind::kAllowed  ? "allowed"
                        : answer.kind == Answer::Kind::kDenied ? "denied"
                                                               : std::string(answer.error));
    });
  }
};

std::string Http(std::string_view status, std::string_view body, std::string_view fields = "") {
  return "HTTP/1.1 " + std::string(status) + " X\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(HttpTalk, AsksForADecision) {
  EXPECT_EQ(
      Side().Ask(7),
      "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Authorization: Bearer c\r\nContent-Length: 82\r\n\r\n"
      R"({"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":"bench7"}]}]})");
}

TEST(HttpTalk, TellsDecisionsFromErrors) {
  Side side;
  for (const std::string& answer :
       {Http("200", R"({"allowed":true})"), Http("429", R"({"allowed":false})"),
        Http("429", R"({"detail":"too many failed logins"})"), Http("404", "<html>")}) {
    side.Ask(1);
    // In two pieces.
    ASSERT_TRUE(side.Take(answer.substr(0, 20)).ok());
    ASSERT_TRUE(side.Take(answer.substr(20)).ok());
  }
  EXPECT_THAT(side.answers, ElementsAre("allowed", "denied", "too many failed logins",
                                        "the answer is not from Headgate"));
}

TEST(HttpTalk, EndsIfTheAnswerIsNotHttp) {
  Side side;
  side.Ask(1);
  const absl::Status status = side.Take("-ERR no\r\n\r\n");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("the answer is not HTTP: "));
}

TEST(HttpTalk, EndsWithAConnectionThatTheServerCloses) {
  Side side;
  side.Ask(1);
  const auto status = side.Take(Http("200", R"({"allowed":true})", "Connection: close\r\n"));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(side.answers, ElementsAre("allowed"));
}

}  // namespace talk_test
}  // namespace headgate::bench
