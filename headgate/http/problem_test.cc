#include "headgate/http/problem.h"
#include "headgate/http/test_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::http {
namespace problem_test {

TEST(Problem, IsADocumentOfRfc9457) {
  Response response;
  AnswerProblem(404, "no \"x\" here", "ask for y", response);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(http::Lines(response.fields), "Content-Type: application/problem+json\r\n");
  EXPECT_EQ(response.body, R"({"type":"about:blank","title":"Not Found","status":404,)"
                           R"("detail":"no \"x\" here","hint":"ask for y"})"
                           "\n");
}

TEST(Problem, HasNoHintWhereThereIsNone) {
  Response response;
  AnswerProblem(503, "draining", "", response);
  EXPECT_EQ(
      response.body,
      R"({"type":"about:blank","title":"Service Unavailable","status":503,"detail":"draining"})"
      "\n");
}

TEST(HttpResponse, RefusesToSplitAnAnswer) {
  Response response;
  EXPECT_DEATH(response.AddField("X", "a\r\nSet-Cookie: b"), "");
}

TEST(MediaType, IgnoresParametersAndCase) {
  EXPECT_TRUE(IsMediaType("application/json", "application/json"));
  EXPECT_TRUE(IsMediaType("Application/JSON ; charset=utf-8", "application/json"));
  EXPECT_FALSE(IsMediaType("", "application/json"));
  EXPECT_FALSE(IsMediaType("application/json+x", "application/json"));
  EXPECT_FALSE(IsMediaType("text/plain, application/json", "application/json"));
}

}  // namespace problem_test
}  // namespace headgate::http
