#include "headgate/front/api/check_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace headgate::front::api {
namespace check_json_test {

// A request on one line: "domain: key=value,key=value cost 2 limit 10/2; …".
std::string Show(const limiter::Request& request) {
  std::string out = fmt::format("{}:", request.domain);
  for (const rule::Descriptor& descriptor : request.descriptors) {
    if (&descriptor != &request.descriptors.front()) out += ";";
    std::string separator = " ";
    for (const rule::Entry& entry : descriptor.entries) {
      out += fmt::format("{}{}={}", separator, entry.key, entry.value);
      separator = ",";
    }
    if (descriptor.cost) out += fmt::format(" cost {}", *descriptor.cost);
    if (descriptor.override_limit) {
      out += fmt::format(" limit {}/{}", descriptor.override_limit->requests_per_unit,
                         static_cast<int>(descriptor.override_limit->unit));
    }
  }
  return out;
}

std::string Read(const std::string& body) {
  CheckParser parser;
  limiter::Request request;
  const std::optional<BodyError> error = parser.Parse(body, request);
  return error ? "error: " + error->detail : Show(request);
}

TEST(CheckJson, ReadsWhatTheDocumentationShows) {
  EXPECT_EQ(
      Read(
          R"({"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":"k1"}],"cost":1}]})"),
      "edge: api_key=k1 cost 1");
}

TEST(CheckJson, TheDomainHasADefaultAndTheCostIsLeftOpen) {
  EXPECT_EQ(Read(R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]}]})"), "default: a=b");
}

TEST(CheckJson, TakesFieldsInAnyOrderAndSpacesAnywhere) {
  EXPECT_EQ(Read("\r\n\t { \"descriptors\" : [ { \"cost\" : 3 , \"entries\" : [ { \"value\" : "
                 "\"b\" , \"key\" : \"a\" } ] } ] "
                 ", \"domain\" : \"d\" } \n"),
            "d: a=b cost 3");
}

TEST(CheckJson, ADescriptorsOwnCostComesBeforeTheRequests) {
  EXPECT_EQ(Read(R"({"descriptors":[{"entries":[{"key":"a","value":"b"}],"cost":0},)"
                 R"({"entries":[{"key":"c","value":"d"},{"key":"e","value":""}]}],"cost":7})"),
            "default: a=b cost 0; c=d,e= cost 7");
}

TEST(CheckJson, ReadsALimitThatTheRequestBrings) {
  EXPECT_EQ(Read(R"({"descriptors":[{"limit":{"requests_per_unit":10,"unit":"minute"},)"
                 R"("entries":[{"key":"a","value":"b"}]}]})"),
            "default: a=b limit 10/2");
  const auto unit = [](const std::string& name) {
    return Read(R"({"descriptors":[{"entries":[{"key":"a","value":"b"}],"limit":{"unit":")" + name +
                R"(","requests_per_unit":4294967295}}]})");
  };
  EXPECT_EQ(unit("second"), "default: a=b limit 4294967295/1");
  EXPECT_EQ(unit("HOUR"), "default: a=b limit 4294967295/3");
  EXPECT_EQ(unit("Day"), "default: a=b limit 4294967295/4");
  EXPECT_EQ(unit("month"), "default: a=b limit 4294967295/5");
  EXPECT_EQ(unit("year"), "default: a=b limit 4294967295/6");
  EXPECT_EQ(unit("week"), "default: a=b limit 4294967295/7");
}

TEST(CheckJson, DecodesEscapesAndKeepsWhatCameBefore) {
  EXPECT_EQ(
      Read(R"({"dom\u0061in":"e\u0064ge\n","descriptors":[{"entries":[)"
           R"({"k\u0065y":"\u00e9\"\\\/","value":"plain"},{"key":"\ud83d\ude00","value":"é"}]}]})"),
      "edge\n: é\"\\/=plain,😀=é");
}

TEST(CheckJson, KeepsLongStringsWhole) {
  const std::string text(100'000, 'x');
  EXPECT_EQ(Read(R"({"descriptors":[{"entries":[{"key":"a","value":")" + text + R"("}]}]})"),
            "default: a=" + text);
  EXPECT_EQ(Read(R"({"descriptors":[{"entries":[{"key":"a","value":"\t)" + text + R"("}]}]})"),
            "default: a=\t" + text);
}

TEST(CheckJson, TakesTheLargestCost) {
  EXPECT_EQ(
      Read(R"({"cost":9223372036854775807,"descriptors":[{"entries":[{"key":"a","value":"b"}]}]})"),
      "default: a=b cost 9223372036854775807");
}

// JSON Schema calls them integers.
TEST(CheckJson, TakesWholeNumbersInEveryForm) {
  for (const auto& [written, cost] : {std::pair("1.0", "1"),
                                      {"1e3", "1000"},
                                      {"0.0", "0"},
                                      {"9007199254740992.0", "9007199254740992"}}) {
    EXPECT_EQ(Read(R"({"cost":)" + std::string(written) +
                   R"(,"descriptors":[{"entries":[{"key":"a","value":"b"}]}]})"),
              "default: a=b cost " + std::string(cost));
  }
}

TEST(CheckJson, ReadsOneBodyAfterAnother) {
  CheckParser parser;
  limiter::Request request;
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(parser.Parse(R"({"domain":"\u0061","descriptors":[{"entries":[{"key":)", request),
              std::nullopt);
    EXPECT_NE(parser.Parse(R"({"descriptors":[{"limit":{"unit":1}}]})", request), std::nullopt);
    const std::string body = R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]}]})";
    ASSERT_EQ(parser.Parse(body, request), std::nullopt);
    EXPECT_EQ(Show(request), "default: a=b");
  }
}

std::string Repeat(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += (i > 0 ? "," : "") + text;
  return out;
}

TEST(CheckJson, TakesAsManyAsTheBoundsAllow) {
  const std::string entries = Repeat(R"({"key":"a","value":"b"})", rule::kEntriesMax);
  const std::string body = R"({"descriptors":[)" +
                           Repeat(R"({"entries":[)" + entries + "]}", rule::kDescriptorsMax) + "]}";
  CheckParser parser;
  limiter::Request request;
  ASSERT_EQ(parser.Parse(body, request), std::nullopt);
  ASSERT_EQ(request.descriptors.size(), rule::kDescriptorsMax);
  for (const rule::Descriptor& descriptor : request.descriptors) {
    ASSERT_EQ(descriptor.entries.size(), rule::kEntriesMax);
    EXPECT_EQ(descriptor.entries[rule::kEntriesMax - 1].value, "b");
  }
}

// ---- Invalid bodies, each with its exact error

struct BadBody {
  std::string body;
  std::string detail;
  std::string hint;
};

constexpr char kWholeCost[] = " must be a whole number from 0 to 9223372036854775807";
constexpr char kTopFields[] = "its fields are domain, descriptors, cost, id, expires_ms";
constexpr char kDescriptorFields[] = "its fields are entries, cost, limit";
constexpr char kEntryFields[] = "its fields are key, value";
constexpr char kLimitFields[] = "its fields are requests_per_unit, unit";

std::string Descriptor(const std::string& fields) {
  return R"({"descriptors":[{)" + fields + "}]}";
}
std::string Second(const std::string& fields) {
  return R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]},{)" + fields + "}]}";
}
std::string Entry(const std::string& fields) {
  return Descriptor(R"("entries":[{)" + fields + "}]");
}
std::string SecondEntry(const std::string& fields) {
  return Second(R"("entries":[{"key":"a","value":"b"},{)" + fields + "}]");
}
const std::string kEntries = R"("entries":[{"key":"a","value":"b"}])";
std::string Cost(const std::string& cost) { return Descriptor(kEntries + R"(,"cost":)" + cost); }
std::string RequestCost(const std::string& cost) {
  return R"({"cost":)" + cost + R"(,"descriptors":[{)" + kEntries + "}]}";
}
std::string Limit(const std::string& limit) {
  return Descriptor(kEntries + R"(,"limit":)" + limit);
}

const BadBody kBadBodies[] = {
    // Not JSON.
    {"", "the body is empty", R"(send {"descriptors": [...]})"},
    {" ", "the body is not JSON: it ends too early", ""},
    {"{", "the body is not JSON: it ends too early", ""},
    {R"({"domain":"x)", "the body is not JSON: it ends too early", ""},
    {R"({"domain")", "the body is not JSON: it ends too early", ""},
    {R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]}])",
     "the body is not JSON: it ends too early", ""},
    {R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]}]})"
     "x",
     "text follows the JSON of the body, at byte 55", ""},
    {R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]}]} {})",
     "text follows the JSON of the body, at byte 56", ""},
    {"hello", "the body is not JSON: syntax error at byte 0", ""},
    {"{domain:1}", "the body is not JSON: syntax error at byte 1", ""},
    {"{'domain':1}", "the body is not JSON: syntax error at byte 1", ""},
    {R"({"domain":"a",})", "the body is not JSON: syntax error at byte 14", ""},
    {R"({"domain":"a" "cost":1})", "the body is not JSON: syntax error at byte 14", ""},
    {R"({"domain":NaN})", "the body is not JSON: syntax error at byte 10", ""},
    {R"({"cost":01})", "the body is not JSON: syntax error at byte 9", ""},
    {R"({"cost":+1})", "the body is not JSON: syntax error at byte 8", ""},
    {R"({"cost":.5})", "the body is not JSON: syntax error at byte 8", ""},
    {"{\"domain\":\"a\nb\"}", "the body is not JSON: syntax error at byte 12", ""},
    {"{\"domain\":\"\xff\"}", "the body is not JSON: syntax error at byte 11", ""},
    {"\xEF\xBB\xBF{}", "the body is not JSON: syntax error at byte 0", ""},
    {R"({"domain":"\x"})", "the body is not JSON: syntax error at byte 12", ""},
    {R"(/* hello */ {})", "the body is not JSON: syntax error at byte 0", ""},
    // The body.
    {"[]", "the body must be an object, not an array", ""},
    {"null", "the body must be an object, not null", ""},
    {"true", "the body must be an object, not true or false", ""},
    {"\"x\"", "the body must be an object, not a string", ""},
    {"1", "the body must be an object, not a number", ""},
    {"{}", "descriptors is missing", ""},
    {R"({"domain":"edge"})", "descriptors is missing", ""},
    {R"({"Domain":"edge"})", "the body has no field \"Domain\"", kTopFields},
    {R"({"domain":"a","entries":[]})", "the body has no field \"entries\"", kTopFields},
    {R"({"":1})", "the body has no field \"\"", kTopFields},
    {R"({")" + std::string(61, 'x') + R"(":1})",
     "the body has no field \"" + std::string(60, 'x') + "...\"", kTopFields},
    {R"({"domain":"a","domain":"a"})", "domain is there twice", ""},
    {R"({"domain":"a","dom\u0061in":"a"})", "domain is there twice", ""},
    {R"({"domain":1})", "domain must be a string, not a number", ""},
    {R"({"domain":null})", "domain must be a string, not null", ""},
    {R"({"domain":""})", "domain must not be empty", ""},
    {RequestCost("-1"), std::string("cost") + kWholeCost, ""},
    {RequestCost("\"1\""), "cost must be a number, not a string", ""},
    // Descriptors.
    {R"({"descriptors":[]})", "descriptors must not be empty", ""},
    {R"({"descriptors":{}})", "descriptors must be an array, not an object", ""},
    {R"({"descriptors":"x"})", "descriptors must be an array, not a string", ""},
    {R"({"descriptors":null})", "descriptors must be an array, not null", ""},
    {R"({"descriptors":[1]})", "descriptors[0] must be an object, not a number", ""},
    {R"({"descriptors":[[]]})", "descriptors[0] must be an object, not an array", ""},
    {R"({"descriptors":[{"entries":[{"key":"a","value":"b"}]},null]})",
     "descriptors[1] must be an object, not null", ""},
    {R"({"descriptors":[)" + Repeat("{" + kEntries + "}", 65) + "]}",
     "descriptors has more than 64 elements", ""},
    {Descriptor(""), "descriptors[0].entries is missing", ""},
    {Second(R"("cost":1)"), "descriptors[1].entries is missing", ""},
    {Descriptor(R"("key":"a")"), "descriptors[0] has no field \"key\"", kDescriptorFields},
    {Second(kEntries + R"(,"hits_addend":1)"), "descriptors[1] has no field \"hits_addend\"",
     kDescriptorFields},
    {Descriptor(kEntries + "," + kEntries), "descriptors[0].entries is there twice", ""},
    {Descriptor(kEntries + R"(,"cost":1,"cost":1)"), "descriptors[0].cost is there twice", ""},
    // Entries.
    {Descriptor(R"("entries":[])"), "descriptors[0].entries must not be empty", ""},
    {Second(R"("entries":[])"), "descriptors[1].entries must not be empty", ""},
    {Descriptor(R"("entries":{"a":"b"})"), "descriptors[0].entries must be an array, not an object",
     ""},
    {Descriptor(R"("entries":["a"])"), "descriptors[0].entries[0] must be an object, not a string",
     ""},
    {Descriptor(R"("entries":[{"key":"a","value":"b"},[]])"),
     "descriptors[0].entries[1] must be an object, not an array", ""},
    {Descriptor(R"("entries":[)" + Repeat(R"({"key":"a","value":"b"})", 33) + "]"),
     "descriptors[0].entries has more than 32 elements", ""},
    {Entry(""), "descriptors[0].entries[0].key is missing", ""},
    {Entry(R"("key":"a")"), "descriptors[0].entries[0].value is missing", ""},
    {SecondEntry(R"("value":"b")"), "descriptors[1].entries[1].key is missing", ""},
    {Entry(R"("key":1)"), "descriptors[0].entries[0].key must be a string, not a number", ""},
    {SecondEntry(R"("key":true)"),
     "descriptors[1].entries[1].key must be a string, not true or false", ""},
    {Entry(R"("key":"a","value":null)"),
     "descriptors[0].entries[0].value must be a string, not null", ""},
    {Entry(R"("key":"a","value":1.5)"),
     "descriptors[0].entries[0].value must be a string, not a number", ""},
    {Entry(R"("key":"a","value":{})"),
     "descriptors[0].entries[0].value must be a string, not an object", ""},
    {Entry(R"("key":"","value":"b")"), "descriptors[0].entries[0].key must not be empty", ""},
    {Entry(R"("key":"a","key":"a","value":"b")"), "descriptors[0].entries[0].key is there twice",
     ""},
    {SecondEntry(R"("key":"a","value":"b","value":"b")"),
     "descriptors[1].entries[1].value is there twice", ""},
    {Entry(R"("key":"a","name":"b")"), "descriptors[0].entries[0] has no field \"name\"",
     kEntryFields},
    // Costs.
    {Cost("-1"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("-9223372036854775809"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("9007199254740994.0"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("-1.0"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("1.5"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("9223372036854775808"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("18446744073709551616"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("1e309"), std::string("descriptors[0].cost") + kWholeCost, ""},
    {Cost("\"1\""), "descriptors[0].cost must be a number, not a string", ""},
    {Cost("null"), "descriptors[0].cost must be a number, not null", ""},
    {Cost("[1]"), "descriptors[0].cost must be a number, not an array", ""},
    {Cost("true"), "descriptors[0].cost must be a number, not true or false", ""},
    // Limits carried by a request.
    {Limit("null"), "descriptors[0].limit must be an object, not null", ""},
    {Limit("10"), "descriptors[0].limit must be an object, not a number", ""},
    {Limit("{}"), "descriptors[0].limit.requests_per_unit is missing", ""},
    {Limit(R"({"requests_per_unit":1})"), "descriptors[0].limit.unit is missing", ""},
    {Limit(R"({"unit":"second"})"), "descriptors[0].limit.requests_per_unit is missing", ""},
    {Limit(R"({"unit":"fortnight"})"),
     "descriptors[0].limit.unit must be second, minute, hour, day, week, month or year", ""},
    {Limit(R"({"unit":""})"),
     "descriptors[0].limit.unit must be second, minute, hour, day, week, month or year", ""},
    {Limit(R"({"unit":1})"), "descriptors[0].limit.unit must be a string, not a number", ""},
    {Limit(R"({"requests_per_unit":4294967296})"),
     "descriptors[0].limit.requests_per_unit must be a whole number from 0 to 4294967295", ""},
    {Limit(R"({"requests_per_unit":-1})"),
     "descriptors[0].limit.requests_per_unit must be a whole number from 0 to 4294967295", ""},
    {Limit(R"({"burst":1})"), "descriptors[0].limit has no field \"burst\"", kLimitFields},
    {Limit(R"({"unit":"day","unit":"day"})"), "descriptors[0].limit.unit is there twice", ""},
};

TEST(CheckJson, RefusesBadBodiesWithTheExactReason) {
  CheckParser parser;
  for (const BadBody& bad : kBadBodies) {
    limiter::Request request;
    const BodyError error = parser.Parse(bad.body, request).value_or(BodyError{});
    EXPECT_EQ(error.detail, bad.detail) << bad.body;
    EXPECT_EQ(error.hint, bad.hint) << bad.body;
  }
}

TEST(CheckJson, DepthCostsNothing) {
  EXPECT_EQ(Read(std::string(1'000'000, '[')), "error: the body must be an object, not an array");
  EXPECT_EQ(Read(R"({"descriptors":)" + std::string(1'000'000, '[')),
            "error: descriptors[0] must be an object, not an array");
}

}  // namespace check_json_test
}  // namespace headgate::front::api
