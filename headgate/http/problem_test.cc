#include "headgate/http/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::http {
namespace {

std::string JsonString(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

TEST(JsonString, EscapesWhatJsonMust) {
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString("plain /text"), R"("plain /text")");
  EXPECT_EQ(JsonString("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(JsonString("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(JsonString(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
}

TEST(JsonString, KeepsUtf8) {
  EXPECT_EQ(JsonString("é€😀"), "\"é€😀\"");
  EXPECT_EQ(JsonString("\u0080\u07ff\u0800\ue000\uffff"), "\"\u0080\u07ff\u0800\ue000\uffff\"");
}

// The examples of the Unicode Standard, 3.9, tables 3-8 to 3-11: one U+FFFD for each maximal subpart.
TEST(JsonString, ReplacesWhatIsNoUtf8) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(JsonString("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "\"" + r + r + r + r + r + r + r + r + "A\"");
  EXPECT_EQ(JsonString("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "\"" + r + r + r + r + r + r + r + r + "A\"");
  EXPECT_EQ(JsonString("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "\"" + r + r + r + r + r + "A" + r + r + "B\"");
  EXPECT_EQ(JsonString("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\"" + r + r + r + r + "A\"");
}

TEST(Problem, IsADocumentOfRfc9457) {
  Response response;
  AnswerProblem(404, "no \"x\" here", "ask for y", response);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.fields, "Content-Type: application/problem+json\r\n");
  EXPECT_EQ(response.body, R"({"type":"about:blank","title":"Not Found","status":404,)"
                           R"("detail":"no \"x\" here","hint":"ask for y"})"
                           "\n");
}

TEST(Problem, HasNoHintWhereThereIsNone) {
  Response response;
  AnswerProblem(503, "draining", "", response);
  EXPECT_EQ(response.body, R"({"type":"about:blank","title":"Service Unavailable","status":503,"detail":"draining"})"
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

}  // namespace
}  // namespace headgate::http
