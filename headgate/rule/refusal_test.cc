#include "headgate/rule/refusal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "headgate/rule/read/refusal_reader.h"

namespace headgate::rule {
namespace refusal_test {

using read::LoadedRefusal;
using read::LoadRefusal;

std::string Rendered(std::string_view type, std::string_view body, const Refused& refused) {
  const auto refusal = Refusal::Make(type, body);
  EXPECT_TRUE(refusal.ok()) << refusal.status();
  std::string out;
  if (refusal.ok()) refusal->AppendBody(refused, out);
  return out;
}

std::string ProblemsOf(std::string_view text) {
  return Describe(LoadRefusal("f.yaml", text).problems);
}

TEST(Refusal, PutsTheValuesInTheirPlaces) {
  EXPECT_EQ(Rendered("text/plain", "${rule}: ${limit}, wait ${seconds} s (${limit})\n",
                     {.rule = "login", .limit = 20, .seconds = 7}),
            "login: 20, wait 7 s (20)\n");
  EXPECT_EQ(Rendered("text/plain", "", {}), "");
  EXPECT_EQ(Rendered("text/plain", "$5 } $ {limit} ${limit}$", {.limit = 3}), "$5 } $ {limit} 3$");
}

TEST(Refusal, CopiesAnEscapedPlaceholder) {
  EXPECT_EQ(Rendered("text/plain", "$${limit} ${limit} $${", {.limit = 3}), "${limit} 3 ${");
}

TEST(Refusal, EscapesTheNameInJson) {
  for (const std::string_view type :
       {"application/json", "application/problem+json; charset=utf-8", "Application/JSON"}) {
    const std::string body = Rendered(type, R"({"rule":"${rule}","seconds":${seconds}})",
                                      {.rule = "a\"b\\c\n", .seconds = 1});
    EXPECT_EQ(nlohmann::json::parse(body)["rule"], "a\"b\\c\n") << type;
  }
}

TEST(Refusal, EscapesTheNameInMarkup) {
  for (const std::string_view type : {"text/html", "application/xml", "image/svg+xml"}) {
    EXPECT_EQ(Rendered(type, "<p>${rule}</p>", {.rule = "<b a='\"'>&"}),
              "<p>&lt;b a=&#39;&quot;&#39;&gt;&amp;</p>")
        << type;
  }
}

TEST(Refusal, SaysNullInJsonIfNoWaitHelps) {
  EXPECT_EQ(Rendered("application/json", "{\"seconds\":${seconds}}", {}), "{\"seconds\":null}");
  EXPECT_EQ(Rendered("text/plain", "wait [${seconds}]", {}), "wait []");
}

TEST(Refusal, NamesUnknownAndOpenPlaceholders) {
  EXPECT_EQ(Refusal::Make("text/plain", "${limit} ${second}").status().message(),
            "body has an unknown placeholder \"second\"");
  EXPECT_EQ(Refusal::Make("text/plain", "${}").status().message(),
            "body has an unknown placeholder \"\"");
  EXPECT_EQ(Refusal::Make("text/plain", "a ${limit").status().message(),
            "body has a '${' without a '}', before \"limit\"");
}

TEST(Refusal, HasBounds) {
  EXPECT_TRUE(Refusal::Make("text/plain", std::string(kRefusalBodyBytesMax, 'x')).ok());
  EXPECT_EQ(
      Refusal::Make("text/plain", std::string(kRefusalBodyBytesMax + 1, 'x')).status().message(),
      "body has 16385 bytes; it may have 16384");
  const std::string type = "text/" + std::string(kContentTypeBytesMax - 5, 'x');
  EXPECT_TRUE(Refusal::Make(type, "").ok());
  EXPECT_EQ(Refusal::Make(type + "x", "").status().message(),
            "content_type is longer than 128 bytes");
}

TEST(Refusal, ContentTypeIsAMediaType) {
  for (const std::string_view type : {"text/plain", "text/plain; charset=utf-8", "a/b+c;d=\"e f\""})
    EXPECT_TRUE(Refusal::Make(type, "").ok()) << type;
  for (const std::string_view type : {"", "json", "/json", "text/", "text /plain",
                                      "text/plain\r\nSet-Cookie: a=b", "text/pl\xc3"})
    EXPECT_FALSE(Refusal::Make(type, "").ok()) << type;
}

TEST(Refusal, IsReadFromYaml) {
  const LoadedRefusal loaded =
      LoadRefusal("f.yaml", "content_type: application/json\nbody: |\n  {\"limit\": ${limit}}\n");
  ASSERT_NE(loaded.refusal, nullptr) << Describe(loaded.problems);
  EXPECT_EQ(loaded.refusal->content_type(), "application/json");
  EXPECT_EQ(loaded.refusal->body(), "{\"limit\": ${limit}}\n");
  const LoadedRefusal plain = LoadRefusal("f.yaml", "body: slow down\n");
  ASSERT_NE(plain.refusal, nullptr) << Describe(plain.problems);
  EXPECT_EQ(plain.refusal->content_type(), "text/plain; charset=utf-8");
}

TEST(Refusal, ProblemsSayWhatToWrite) {
  EXPECT_EQ(ProblemsOf("body: hello\ntype: text/plain\n"),
            "f.yaml:2:1: a refusal has no word 'type'\n"
            "  hint: a refusal has content_type and body\n");
  EXPECT_EQ(ProblemsOf("contenttype: a\n"),
            "f.yaml:1:1: a refusal has no word 'contenttype'\n"
            "  hint: did you mean 'content_type'?\n");
  EXPECT_EQ(ProblemsOf("body: {\"limit\": 5}\n"),
            "f.yaml:1:7: body is not a text\n"
            "  hint: write JSON in single quotes, or on lines of its own behind \"body: |\"\n");
  EXPECT_EQ(ProblemsOf("body: a\nbody: b\n"),
            "f.yaml:2:1: body comes twice in a refusal\n  hint: leave out one of them\n");
  EXPECT_EQ(ProblemsOf("content_type: json\nbody: a\n"),
            "f.yaml:1:15: content_type \"json\" is not a media type, such as text/plain or "
            "application/problem+json\n"
            "  hint: write the value of the field Content-Type\n");
  EXPECT_EQ(ProblemsOf("body: ${name}\n"),
            "f.yaml:1:7: body has an unknown placeholder \"name\"\n"
            "  hint: the placeholders are ${limit}, ${seconds} and ${rule}; $${ stands for ${ "
            "itself\n");
  for (const std::string_view text : {"", "[]", "text", "content_type: text/plain\n", "a: [\n"})
    EXPECT_NE(ProblemsOf(text), "") << text;
}

}  // namespace refusal_test
}  // namespace headgate::rule
