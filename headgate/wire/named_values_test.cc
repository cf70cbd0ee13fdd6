#include "headgate/wire/named_values.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace headgate::wire {
namespace named_values_test {

// The value, or the reason why there is none in angle brackets.
std::string Query(std::string_view query, std::string_view name) {
  std::string value;
  switch (FindInQuery(query, name, value)) {
    case Lookup::kFound:
      return value;
    case Lookup::kAbsent:
      return "<absent>";
    case Lookup::kTwice:
      return "<twice>";
    case Lookup::kInvalid:
      return "<invalid>";
  }
  return "";
}

TEST(Query, FindsAndDecodesAValue) {
  EXPECT_EQ(Query("a=1&b=2", "b"), "2");
  EXPECT_EQ(Query("q=x+y%20z%2B", "q"), "x y z+");
  EXPECT_EQ(Query("flag&b=", "flag"), "");
  EXPECT_EQ(Query("q=+x+y%20", "q"), "x y") << "many applications remove spaces at the ends";
  EXPECT_EQ(Query("q=%20+", "q"), "");
  EXPECT_EQ(Query("b=a=b", "b"), "a=b");
}

TEST(Query, AnEncodedNameIsTheSameName) {
  EXPECT_EQ(Query("%61pi+key=1", "api key"), "1");
  EXPECT_EQ(Query("key=1&%6bey=2", "key"), "<twice>");
}

TEST(Query, DoesNotAnswerWithOneOfTwoValues) {
  EXPECT_EQ(Query("k=1&k=2", "k"), "<twice>");
  EXPECT_EQ(Query("k=1&x&k=1", "k"), "<twice>");
}

TEST(Query, RefusesBrokenEscapesAndControlCharacters) {
  EXPECT_EQ(Query("k=%zz", "k"), "<invalid>");
  EXPECT_EQ(Query("k=%2", "k"), "<invalid>");
  EXPECT_EQ(Query("k=a%0ab", "k"), "<invalid>");
  EXPECT_EQ(Query("k=%00", "k"), "<invalid>");
}

TEST(Query, AnAbsentNameIsAbsent) {
  EXPECT_EQ(Query("", "k"), "<absent>");
  EXPECT_EQ(Query("kk=1&k_=1&k%zz=3&x[k]=4", "k"), "<absent>");
}

TEST(Query, ANameThatAReaderTakesForItIsTheSame) {
  EXPECT_EQ(Query("api.key=1", "api_key"), "1");
  EXPECT_EQ(Query("api_key[]=1", "api_key"), "1");
  EXPECT_EQ(Query("API_KEY=1", "api_key"), "1");
  EXPECT_EQ(Query("api_key=2&api.key=1", "api_key"), "<twice>");
  EXPECT_EQ(Query("api_key=2&api_key[x]=1", "api_key"), "<twice>");
  EXPECT_EQ(Query("api_key%00=1", "api_key"), "<invalid>");
}

TEST(Query, RefusesASemicolonWhereverItIs) {
  EXPECT_EQ(Query("k=1;k=2", "k"), "<invalid>");
  EXPECT_EQ(Query("x=1;2&k=1", "k"), "<invalid>");
  EXPECT_EQ(Query("k=1%3B2", "k"), "1;2");
}

TEST(Query, RefusesAValueThatIsNotUtf8) {
  EXPECT_EQ(Query("k=%ff", "k"), "<invalid>");
  EXPECT_EQ(Query("k=%c3%a9", "k"), "\xc3\xa9");
  EXPECT_EQ(Query("x=%ff&k=1", "k"), "1") << "the other parameters do not matter";
}

TEST(Query, OtherParametersMayHaveBracketsAndRepeat) {
  EXPECT_EQ(Query("ids[]=1&ids[]=2&filter[k]=3&k=1&sort=-a,b&q=x:y/z", "k"), "1");
}

std::string Cookie(std::string_view line, std::string_view name) {
  std::string_view value;
  const Lookup found = FindInCookies(line, name, value);
  if (found == Lookup::kTwice) return "<twice>";
  if (found == Lookup::kInvalid) return "<invalid>";
  return found == Lookup::kFound ? std::string(value) : "<absent>";
}

TEST(Cookies, FindsAValue) {
  EXPECT_EQ(Cookie("SID=31d4d96e407aad42; lang=en-US", "lang"), "en-US");
  EXPECT_EQ(Cookie("SID=31d4d96e407aad42; lang=en-US", "SID"), "31d4d96e407aad42");
  EXPECT_EQ(Cookie("a=b=c;d", "a"), "b=c");
  EXPECT_EQ(Cookie(R"(a="quoted")", "a"), "quoted");
  EXPECT_EQ(Cookie("a=", "a"), "");
}

// Python reads "b\141d" and "b\ad" as bad, and a quoted value to its closing quote.
TEST(Cookies, RefusesWhatReadersDecodeDifferently) {
  for (const std::string_view value :
       {R"("b\ad")", R"("b\141d")", R"(b\ad)", R"(""bad"")", R"("bad)", R"(bad")", R"(")",
        R"(b"a"d)", R"("bad; x")", "bad\xa0", "bad x", "a,b", R"("a b")", "a\tb"})
    EXPECT_EQ(Cookie("sid=" + std::string(value), "sid"), "<invalid>") << value;
  EXPECT_EQ(Cookie(R"(a="b\ad"; sid=1)", "sid"), "1") << "the other cookies do not matter";
}

std::string Decoded(std::string_view value) {
  std::string out = ">";
  return DecodeCookie(value, out) ? out.substr(1) : "<invalid>";
}

// Node, PHP and Rack decode these in the same way; others decode nothing.
TEST(Cookies, AreDecodedOnce) {
  for (const std::string_view value : {"s%3Aabc", "s%3aabc", "%73%3Aabc", "s%3A%61bc", "s:abc"})
    EXPECT_EQ(Decoded(value), "s:abc") << value;
  EXPECT_EQ(Decoded("%62ad"), "bad");
  EXPECT_EQ(Decoded("%2562ad"), "%62ad");
  EXPECT_EQ(Decoded("a+b%20c"), "a+b+c") << "Rack takes + for a space";
  EXPECT_EQ(Decoded("%22%C3%A9%22"), "\"\xc3\xa9\"");
  EXPECT_EQ(Decoded(""), "");
}

TEST(Cookies, KeepTextWithoutAnEscape) {
  for (const std::string_view value : {"50%", "%", "%%", "%zz", "100%, or %5"})
    EXPECT_EQ(Decoded(value), value);
}

// decodeURIComponent throws, and libraries then keep the text; PHP decodes what it can.
TEST(Cookies, AreInvalidIfReadersDecodeThemDifferently) {
  for (const std::string_view value :
       {"%zz%62ad", "%62ad%", "%ff", "%c3", "%c0%af", "%ed%a0%80", "a%00", "a%0Ab", "%7f"})
    EXPECT_EQ(Decoded(value), "<invalid>") << value;
}

TEST(Cookies, AValueStaysIfTheNextLineLacksTheCookie) {
  std::string_view value = R"("kept")";
  EXPECT_EQ(FindInCookies("a=1", "sid", value), Lookup::kAbsent);
  EXPECT_EQ(value, R"("kept")");
}

TEST(Cookies, NamesMustBeUnique) {
  EXPECT_EQ(Cookie("sid=1; sid=2", "sid"), "<twice>");
  EXPECT_EQ(Cookie("sid=1; SID=2", "sid"), "<twice>") << "ASP.NET ignores case";
  EXPECT_EQ(Cookie("session.id=1; session_id=2", "session_id"), "<twice>");
  EXPECT_EQ(Cookie("session_id[]=1; session_id=2", "session_id"), "<twice>");
  EXPECT_EQ(Cookie("session.id=1", "session_id"), "1");
}

// http.cookies begins a cookie behind a space.
TEST(Cookies, ANameBehindAnotherCookieIsInvalid) {
  for (const std::string_view line :
       {"a=1 sid=2", "a=1, sid=2", "a=1\tsid=2", "a=1\x0bsid=2", "a=1\xa0sid=2", "a=1 sid =2",
        "a sid=2", "sid=1; a=1 sid=2", "a=\"b sid=2\"", "a=\"sid=2", "a=1 S.I.D=2; x=\"sid=3\""})
    EXPECT_EQ(Cookie(line, "sid"), "<invalid>") << line;
}

// Values that analytics, consent tools and frameworks set, as browsers send them.
TEST(Cookies, OthersMayHaveWhatServersSet) {
  for (const std::string_view other :
       {"_ga=GA1.2.1234567.1600000000", "_ga_X1=GS1.1.170.1.1.170.0.0.0",
        R"(prefs={"a":1,"b":[2, 3]})",
        "OptanonConsent=isGpcEnabled=0&datestamp=Mon+Nov+27+2026&version=6.1", "d=Mon, 01 Jan 2026",
        "__utmz=1.1.1.1.utmcsr=(direct)|utmccn=(direct)",
        "token=YWJj==", "u=https://x/?sid=5&b=sid=6", "k=a=b=c", "csrf=\"a b\"", "bare", "my-sid=1",
        "sid2=1", "x=1,sid", "n=caf\xc3\xa9"}) {
    EXPECT_EQ(Cookie(std::string(other) + "; sid=YQ==", "sid"), "YQ==") << other;
    EXPECT_EQ(Cookie("sid=YQ==; " + std::string(other), "sid"), "YQ==") << other;
  }
}

}  // namespace named_values_test
}  // namespace headgate::wire
