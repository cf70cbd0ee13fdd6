// A head that is valid here means the same to a reader of HTTP/1.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headgate/http/http2/head_reader.h"
#include "headgate/http/http2/test_frames.h"
#include "headgate/http/http2/test_translation.h"

namespace headgate::http::http2 {
namespace translation_test {

struct TranslationCase {
  std::string name;
  Pairs fields;
  std::string body{};  // of an unsized request, or one with content-length
  Pairs trailers{};
  bool ended = true;
};

TEST(Translation, ValidHeadsMeanTheSame) {
  Pairs options = Get("*");
  options[0].second = "OPTIONS";
  Pairs many = Get();
  for (int i = 0; i < 90; ++i) many.emplace_back("x-" + std::to_string(i), "y");
  const auto path = [](std::string_view text) { return Get(text); };
  const std::vector<TranslationCase> cases = {
      {"GET", Get()},
      {"a query", path("/a/b?c=d&e=%20")},
      {"two slashes", path("//b.example/x")},
      {"dots", path("/a/../b/./c")},
      {"OPTIONS of the server", options},
      {"POST without a body", Post()},
      {"a sized body", Post({{"content-length", "5"}}), "hello", {}, false},
      {"a body like a request",
       Post({{"content-length", "38"}}),
       "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\nxy",
       {},
       false},
      {"an unsized body", Post(), "hello", {}, false},
      {"an unsized body like a chunk", Post(), "0\r\n\r\nGET /x HTTP/1.1\r\n\r\n", {}, false},
      {"trailers", Post({{"te", "trailers"}}), "hello", {{"sum", "1"}}, false},
      {"an empty unsized body", Post(), "", {}, false},
      {"a body of GET", With(Get(), {{"content-length", "5"}}), "hello", {}, false},
      {"cookies", With(Get(), {{"cookie", "a=1"}, {"cookie", "b=2"}})},
      {"an empty cookie", With(Get(), {{"cookie", "a=1"}, {"cookie", ""}})},
      {"te", With(Get(), {{"te", "trailers"}})},
      {"expect", Post({{"expect", "100-continue"}, {"content-length", "1"}}), "a", {}, false},
      {"expect without content", Post({{"expect", "100-continue"}, {"content-length", "0"}})},
      {"UTF-8", With(Get(), {{"x", "\xc3\xa4"}})},
      {"a tab", With(Get(), {{"x", "a\tb"}})},
      {"an empty value", With(Get(), {{"x", ""}})},
      {"a value like a field", With(Get(), {{"x", "a: b"}})},
      {"host alone", {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {"host", "b"}}},
      {"many fields", many},
      {"a rare method",
       {{":method", "M-SEARCH"}, {":scheme", "http"}, {":path", "/"}, {":authority", "[::1]:80"}}},
  };
  const HeadBounds bounds;
  for (const TranslationCase& test : cases) {
    SCOPED_TRACE(test.name);
    RequestHeadReader reader(bounds);
    reader.Begin();
    for (const auto& [name, value] : test.fields) EXPECT_TRUE(reader.Add(name, value));
    ASSERT_EQ(reader.Finish(test.ended), RequestHeadReader::Verdict::kValid);
    Fields trailers;
    for (const auto& [name, value] : test.trailers) trailers.Add(name, value);
    Translation translation;
    translation.Run(reader.head(), test.body, trailers);
    EXPECT_EQ(translation.Difference(reader.head(), test.body, trailers), "");
    // A reader of HTTP/1 that refuses content of GET takes it for nothing else.
    EXPECT_TRUE(!translation.refused() || test.name == "a body of GET");
  }
}

}  // namespace translation_test
}  // namespace headgate::http::http2
