// Clients that close their direction of the connection.
#include "headgate/http/http1/server_dialogue.h"

namespace headgate::http::http1 {
namespace server_abandoned_test {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";

void Silent(Received& /*received*/) {}

TEST(Http1Abandoned, ARequestWhoseClientHasClosedBeforeTheAnswerIsAbandoned) {
  for (const std::string_view request : {kGet, kPost}) {
    ServerDialogue d;
    d.application.on_end = Silent;
    d.Say(request);
    EXPECT_EQ(d.End(), "");
    EXPECT_TRUE(d.progress.close);
    EXPECT_TRUE(d.application.last().aborted);
  }
}

TEST(Http1Abandoned, AnAnswerThatHasBegunGoesToAClientThatHasClosedItsDirection) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(kGet);
  d.application.last().exchange->SendHead({.body = {.kind = BodyLength::Kind::kSized, .bytes = 2}});
  EXPECT_THAT(d.Run(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(d.End(), "");
  EXPECT_FALSE(d.progress.close);
  d.application.last().exchange->SendData("ok");
  d.application.last().exchange->SendEnd({});
  EXPECT_EQ(d.Run(), "ok");
}

// While the next requests of a pipeline are not read, the connection notices the end.
TEST(Http1Abandoned, APipelineIsAbandonedToo) {
  ServerDialogue d;
  d.application.on_end = Silent;
  d.Say(kGet);
  EXPECT_FALSE(d.progress.ends_with_peer) << "it reads";
  d.Say(kGet);
  EXPECT_TRUE(d.progress.stop_reading);
  EXPECT_TRUE(d.progress.ends_with_peer);
  d.application.last().exchange->SendHead({.body = {.kind = BodyLength::Kind::kSized, .bytes = 2}});
  d.Run();
  EXPECT_FALSE(d.progress.ends_with_peer);
}

TEST(Http1Abandoned, AnswersAClientThatHasClosedItsDirection) {
  ServerDialogue d({.cancels_abandoned = false});
  d.application.on_end = Silent;
  d.Say(std::string(kGet) + std::string(kGet));
  EXPECT_EQ(d.End(), "");
  EXPECT_FALSE(d.progress.close);
  d.application.last().Answer("1");
  EXPECT_THAT(d.Run(), EndsWith("1"));
  ASSERT_EQ(d.application.requests.size(), 2u);
  d.application.last().Answer("2");
  EXPECT_THAT(d.Run(), EndsWith("2"));
  EXPECT_TRUE(d.progress.close);
}

}  // namespace server_abandoned_test
}  // namespace headgate::http::http1
