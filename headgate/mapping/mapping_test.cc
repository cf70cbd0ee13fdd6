#include "headgate/mapping/mapping.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace mapping_test {

using Fields = std::vector<HeaderField>;

// A file with one descriptor of these entries.
std::string OneDescriptor(std::string_view entries, std::string_view more = "") {
  return std::string("trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\n") +
         std::string(more) + "mappings:\n- descriptors:\n  - entries: [" + std::string(entries) +
         "]\n";
}

std::string Map(std::string_view entries, const DescribedRequest& request,
                std::string_view more = "") {
  return MappingRig(OneDescriptor(entries, more)).Map(request);
}

TEST(Attributes, ReadEveryPartOfARequest) {
  const Fields fields = {{"X-API-Key", "k1"},
                         {"Cookie", "a=1; sid=s7"},
                         {"X-Lat", "57.64911"},
                         {"X-Lon", "10.40744"},
                         {"X-Forwarded-For", "203.0.113.7, 10.0.0.2"}};
  const DescribedRequest request{.method = "POST",
                                 .host = "API.Example.com.:8443",
                                 .target = "/a//b/%63?q=x+y&z=1",
                                 .fields = fields,
                                 .peer = Ip("10.0.0.1")};
  const std::vector<std::pair<std::string_view, std::string_view>> expected = {
      {"value: gold", "gold"},
      {"header: x-api-key", "k1"},
      {"cookie: sid", "s7"},
      {"query: q", "x y"},
      {"method: true", "POST"},
      {"host: true", "api.example.com"},
      {"path: true", "/a/b/c"},
      {"path_prefix: 2", "/a/b"},
      {"path_prefix: 9", "/a/b/c"},
      {"path_segment: 3", "c"},
      {"client_address: true", "203.0.113.7"},
      {"geohash: 5, latitude_header: X-Lat, longitude_header: X-Lon", "u4pru"}};
  for (const auto& [attribute, value] : expected) {
    EXPECT_EQ(Map("{key: k, " + std::string(attribute) + "}", request), "k=" + std::string(value));
  }
}

TEST(Attributes, WhatIsNotThereIsMissing) {
  const DescribedRequest empty;
  for (const std::string_view attribute :
       {"header: X-API-Key", "cookie: sid", "query: q", "method: true", "host: true", "path: true",
        "path_prefix: 1", "path_segment: 1", "client_address: true",
        "geohash: 5, latitude_header: X-Lat, longitude_header: X-Lon"}) {
    EXPECT_EQ(Map("{key: k, " + std::string(attribute) + "}", empty), "missing k") << attribute;
  }
  const Fields fields = {{"X-API-Key", ""}, {"Cookie", "sid="}};
  EXPECT_EQ(Map("{key: k, header: X-API-Key}", {.fields = fields}), "missing k");
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = fields}), "missing k");
  EXPECT_EQ(Map("{key: k, path_segment: 2}", {.target = "/a/"}), "missing k");
}

TEST(Attributes, WhatIsAmbiguousIsInvalid) {
  const Fields twice = {{"X-API-Key", "k1"}, {"x-api-key", "k1"}};
  EXPECT_EQ(Map("{key: k, header: X-API-Key}", {.fields = twice}), "invalid k");
  const Fields cookies = {{"Cookie", "sid=1"}, {"Cookie", "sid=2"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = cookies}), "invalid k");
  EXPECT_EQ(Map("{key: k, query: q}", {.target = "/?q=1&q=2"}), "invalid k");
  EXPECT_EQ(Map("{key: k, path: true}", {.target = "/a%2fb"}), "invalid k");
  const Fields controls = {{"X-API-Key", "k\x01"}};
  EXPECT_EQ(Map("{key: k, header: X-API-Key}", {.fields = controls}), "invalid k");
  const Fields underscore = {{"X_API_Key", "k1"}};
  EXPECT_EQ(Map("{key: k, header: X-API-Key}", {.fields = underscore}), "invalid k")
      << "CGI makes HTTP_X_API_KEY of it, too";
  const Fields nowhere = {{"X-Lat", "91"}, {"X-Lon", "0"}};
  EXPECT_EQ(Map("{key: k, geohash: 5, latitude_header: X-Lat, longitude_header: X-Lon}",
                {.fields = nowhere}),
            "invalid k");
}

// Backends end the target at a raw '#', and some remove bytes above 0x7f at its end.
TEST(Attributes, ATargetThatServersReadDifferentlyIsInvalid) {
  for (const std::string_view attribute : {"path: true", "path_prefix: 1", "query: q"}) {
    const std::string entries = "{key: k, " + std::string(attribute) + "}";
    for (const std::string_view target :
         {"/a?q=bad#x", "/a?x=1#&q=bad", "/a#?q=bad", "/a\xa0?q=bad", "/a?q=bad\xa0",
          "/a?q=bad\x85", "/\xc3\xa9?q=bad", "/a?q=bad "})
      EXPECT_EQ(Map(entries, {.target = target}), "invalid k") << attribute << " " << target;
  }
  EXPECT_EQ(Map("{key: k, query: q}", {.target = "/%c3%a9?q=%c3%a9%23"}), "k=\xc3\xa9#");
  EXPECT_EQ(Map("{key: k, path: true}", {.target = "/%c3%a9?q=%23"}), "k=/\xc3\xa9");
  const Fields fields = {{"X-API-Key", "k1"}};
  EXPECT_EQ(Map("{key: k, header: X-API-Key}", {.target = "/a#b", .fields = fields}), "k=k1")
      << "no mapping needs the target";
}

TEST(Attributes, ACookieThatBackendsUnquoteIsInvalid) {
  const Fields escaped = {{"Cookie", R"(sid="b\ad")"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = escaped}), "invalid k");
  const Fields two_lines = {{"Cookie", R"(sid=""bad"")"}, {"Cookie", "a=1"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = two_lines}), "invalid k");
  const Fields quoted = {{"Cookie", R"(sid="bad")"}, {"Cookie", "a=1"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = quoted}), "k=bad");
}

TEST(Attributes, ACookieIsDecodedOnce) {
  for (const std::string_view value : {"s%3Aabc", "s%3aabc", "%73%3Aabc", R"("s%3A%61bc")"}) {
    const std::string line = "a=1; sid=" + std::string(value);
    const Fields fields = {{"Cookie", line}, {"Cookie", "b=2"}};
    EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = fields}), "k=s:abc") << value;
  }
  const Fields broken = {{"Cookie", "sid=50%"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = broken}), "k=50%");
  const Fields mixed = {{"Cookie", "sid=%zz%62ad"}};
  EXPECT_EQ(Map("{key: k, cookie: sid}", {.fields = mixed}), "invalid k");
}

TEST(Attributes, AMethodWithLowerCaseLettersIsInvalid) {
  EXPECT_EQ(Map("{key: k, method: true}", {.method = "post"}), "invalid k");
  EXPECT_EQ(Map("{key: k, method: true}", {.method = "PoST"}), "invalid k");
  EXPECT_EQ(Map("{key: k, method: true}", {.method = "M-SEARCH"}), "k=M-SEARCH");
}

TEST(Attributes, AnIpv6ClientIsItsNetwork) {
  const Fields fields = {{"X-Forwarded-For", "2001:db8:1:2:3:4:5:6"}};
  EXPECT_EQ(Map("{key: k, client_address: true}", {.fields = fields}), "k=2001:db8:1:2::/64");
  EXPECT_EQ(Map("{key: k, client_address: true}", {.fields = fields}, "ipv6_prefix: 48\n"),
            "k=2001:db8:1::/48");
  EXPECT_EQ(Map("{key: k, client_address: true}", {.fields = fields}, "ipv6_prefix: 128\n"),
            "k=2001:db8:1:2:3:4:5:6");
  const Fields mapped = {{"X-Forwarded-For", "::ffff:192.0.2.1"}};
  EXPECT_EQ(Map("{key: k, client_address: true}", {.fields = mapped}), "k=192.0.2.1");
}

TEST(Attributes, AHostMayBeAnAddress) {
  EXPECT_EQ(Map("{key: k, host: true}", {.host = "[::1]:80"}), "k=[::1]");
  EXPECT_EQ(Map("{key: k, host: true}", {.host = "[::1]"}), "k=[::1]");
  EXPECT_EQ(Map("{key: k, host: true}", {.host = "192.0.2.1:80"}), "k=192.0.2.1");
}

TEST(Attributes, AHostThatIsAmbiguousIsInvalid) {
  for (const std::string_view host :
       {"a.example.com:80:80", "a.example.com:80:x", "a.example.com:]", "x@a.example.com",
        "a.example.com/x", "%61.example.com"})
    EXPECT_EQ(Map("{key: k, host: true}", {.host = host}), "invalid k") << host;
  EXPECT_EQ(Map("{key: k, host: true}", {.host = ""}), "missing k");
}

constexpr std::string_view kSeveral = R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
domain: edge
mappings:
- path: [/login, /users/*/password]
  method: [POST]
  descriptors:
  - entries: [{key: remote_address, client_address: true}]
  - entries: [{key: user, query: user}, {key: action, value: login}]
    cost: 5
    optional: true
- path: /api/*
  host: "*.example.com"
  domain: api
  descriptors:
  - entries: [{key: api_key, header: X-API-Key}]
- path: /static/*
)";

TEST(Mapper, TheFirstMappingThatFitsDecides) {
  MappingRig rig(kSeveral);
  const Fields fields = {{"X-API-Key", "k1"}, {"X-Forwarded-For", "192.0.2.1"}};
  const auto map = [&](std::string_view method, std::string_view host, std::string_view target) {
    return rig.Map({.method = method, .host = host, .target = target, .fields = fields});
  };
  EXPECT_EQ(map("POST", "h", "/login"), "remote_address=192.0.2.1");
  EXPECT_EQ(map("POST", "h", "/login?user=ann"),
            "remote_address=192.0.2.1; user=ann,action=login x5");
  EXPECT_EQ(map("POST", "h", "/users/7/password"), "remote_address=192.0.2.1");
  EXPECT_EQ(map("GET", "h", "/login"), "unmatched");
  EXPECT_EQ(map("post", "h", "/login"), "invalid the original request")
      << "backends run it as POST";
  EXPECT_EQ(map("post", "h", "/other"), "unmatched") << "no mapping needs the method";
  EXPECT_EQ(map("GET", "a.example.com", "/api/x"), "api_key=k1");
  EXPECT_EQ(map("GET", "example.com", "/api/x"), "unmatched");
  EXPECT_EQ(map("GET", "evilexample.com", "/api/x"), "unmatched");
  EXPECT_EQ(map("GET", "A.example.com.:443", "/api/x"), "api_key=k1");
  EXPECT_EQ(map("GET", "a.example.com:80:80", "/api/x"), "invalid the original request");
  EXPECT_EQ(map("GET", "h", "/static/x"), "");
  EXPECT_EQ(map("GET", "a.example.com", "/api//./x"), "api_key=k1");
  EXPECT_EQ(map("GET", "a.example.com", "/%61pi/x"), "api_key=k1");
}

TEST(Mapper, APathThatCannotBeJudgedDoesNotPass) {
  MappingRig rig(kSeveral);
  EXPECT_EQ(rig.Map({.method = "GET", .host = "h", .target = "/api%2fx"}),
            "invalid the original request");
  EXPECT_EQ(rig.Map({.method = "GET", .host = "h"}), "missing the original request");
  EXPECT_EQ(rig.Map({.host = "h", .target = "/login"}), "missing the original request");
}

TEST(Mapper, ListsExemptAndRefuse) {
  MappingRig rig(
      R"(
trusted_proxies: [10.0.0.0/8]
mappings:
- exempt:
  - {client_address: true, networks: [192.0.2.0/24], networks_file: office.txt}
  - {header: X-API-Key, values: [internal]}
  refuse:
  - {client_address: true, networks: ["2001:db8::/32", 192.0.2.66]}
  - {header: User-Agent, values_file: bots.txt}
  descriptors:
  - entries: [{key: k, value: all}]
)",
      {{"office.txt", "# the office\n198.51.100.0/24  # here\n\n"}, {"bots.txt", "bad bot/1\r\n"}});
  const auto map = [&](std::string_view address, std::string_view key, std::string_view agent) {
    const Fields fields = {{"X-Forwarded-For", address}, {"X-API-Key", key}, {"User-Agent", agent}};
    return rig.Map({.fields = fields});
  };
  EXPECT_EQ(map("203.0.113.1", "k1", "curl"), "k=all");
  EXPECT_EQ(map("192.0.2.1", "k1", "curl"), "exempt");
  EXPECT_EQ(map("198.51.100.9", "k1", "curl"), "exempt");
  EXPECT_EQ(map("203.0.113.1", "internal", "curl"), "exempt");
  EXPECT_EQ(map("192.0.2.66", "internal", "curl"), "refused") << "refuse goes before exempt";
  EXPECT_EQ(map("2001:db8:ffff::1", "k1", "curl"), "refused");
  EXPECT_EQ(map("203.0.113.1", "k1", "bad bot/1"), "refused");
  EXPECT_EQ(map("rubbish", "internal", "curl"), "invalid an attribute of a list");
  const Fields only_address = {{"X-Forwarded-For", "203.0.113.1"}};
  EXPECT_EQ(rig.Map({.fields = only_address}), "k=all") << "what is missing is in no list";
}

// The values are what a backend finds when it has decoded the request.
// RFC 9110, 7.1.
TEST(Mapper, OptionsOfTheServerHasNoPath) {
  MappingRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\nmappings:\n"
      "- {path: [/, /*/x], descriptors: [{entries: [{key: path, path: true}]}]}\n"
      "- path: \"*\"\n  descriptors:\n  - entries: [{key: rest, path: true}]\n"
      "  - {entries: [{key: segment, path_segment: 1}], optional: true}\n");
  EXPECT_EQ(rig.Map({.method = "OPTIONS", .target = "*", .peer = Ip("10.0.0.1")}), "rest=*");
  EXPECT_EQ(rig.Map({.method = "GET", .target = "*", .peer = Ip("10.0.0.1")}),
            "invalid the original request");
}

TEST(Mapper, ListsHoldDecodedValues) {
  MappingRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\nmappings:\n- refuse:\n"
      "  - {path: true, values: [/50%]}\n  - {path_prefix: 1, values: [/51%]}\n"
      "  - {path_segment: 1, values: [52%, 'C#']}\n  - {cookie: sid, values: [' a', 'b ']}\n");
  for (const std::string_view target : {"/50%25", "/%350%25", "/51%25/a", "/52%25/a", "/C%23"})
    EXPECT_EQ(rig.Map({.target = target}), "refused") << target;
  for (const std::string_view target : {"/50", "/50%2525", "/51%2525/a", "/C"})
    EXPECT_EQ(rig.Map({.target = target}), "") << target;
  EXPECT_EQ(rig.Map({.target = "/50%"}), "invalid an attribute of a list");
  for (const std::string_view cookie : {"sid=%20a", "sid=+a", "sid=b%20", "sid=b+"}) {
    const Fields fields = {{"Cookie", cookie}};
    EXPECT_EQ(rig.Map({.target = "/", .fields = fields}), "refused") << cookie;
  }
  const Fields trimmed = {{"Cookie", "sid= a"}};
  EXPECT_EQ(rig.Map({.target = "/", .fields = trimmed}), "");
}

// A path of which two hexadecimal digits follow a percent sign is written as in a URL.
TEST(Mapper, ListsAndConditionsCanNameEveryPercentSign) {
  MappingRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n"
      "- path: [/c/%2541, /d/%25/*]\n"
      "  descriptors: [{entries: [{key: k, value: v}]}]\n"
      "- refuse:\n"
      "  - {path: true, values: [/%2541, /e%25]}\n  - {path_prefix: 1, values: [/b%2541]}\n"
      "  - {path_segment: 2, values: ['%2525']}\n");
  for (const std::string_view target : {"/c/%2541", "/c/%25%34%31", "/c//%2541", "/d/%25/a"})
    EXPECT_EQ(rig.Map({.target = target}), "k=v") << target;
  for (const std::string_view target : {"/%2541", "/e%25", "/b%2541/a", "/a/%2525/b"})
    EXPECT_EQ(rig.Map({.target = target}), "refused") << target;
  for (const std::string_view target :
       {"/A", "/%41", "/%252541", "/e", "/bA", "/b%41", "/a/%25", "/c/A", "/c/%41", "/d/%25%25/a"})
    EXPECT_EQ(rig.Map({.target = target}), "") << target;
}

// A proxy that does not state the client's address would let every client of the list pass.
TEST(Mapper, ARefusalByAddressNeedsTheAddress) {
  const auto rig = [](std::string_view list) {
    return MappingRig("trusted_proxies: [10.0.0.0/8]\nmappings:\n- " + std::string(list) +
                      ": [{client_address: true, networks: [192.0.2.0/24]}]\n"
                      "  descriptors: [{entries: [{key: k, value: all}]}]\n");
  };
  EXPECT_EQ(rig("refuse").Map({}), "missing an attribute of a list");
  EXPECT_EQ(rig("exempt").Map({}), "k=all") << "it is counted, which is the safe side";
}

TEST(Mapper, NamesTheAttributeThatIsMissingOrInvalid) {
  MappingRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\njwt:\n- {unverified: true}\n"
      "mappings:\n- path: /tokens\n  descriptors: [{entries: [{key: user, claim: sub}]}]\n"
      "- refuse: [{header: User-Agent, values: [bad]}]\n"
      "  descriptors: [{entries: [{key: api_key, header: X-API-Key}]}]\n");
  const auto describe = [&](const DescribedRequest& request) {
    return DescribeProblem(rig.mapper.Map(request, 0));
  };
  EXPECT_EQ(describe({.target = "/"}), "header X-API-Key is missing");
  EXPECT_EQ(describe({}), "the original request is missing");
  EXPECT_EQ(describe({.target = "/tokens"}), "claim sub of the token is missing");
  const Fields expired = {{"Authorization", "Bearer e30.eyJleHAiOjB9."}};  // {"exp":0}
  EXPECT_EQ(DescribeProblem(rig.mapper.Map({.target = "/tokens", .fields = expired}, 1000)),
            "claim sub of the token cannot be read: the token has expired");
  const Fields two_parts = {{"Authorization", "Bearer a.b"}};
  EXPECT_EQ(describe({.target = "/tokens", .fields = two_parts}),
            "claim sub of the token cannot be read: the token is not header.claims.signature");
  const Fields agents = {{"User-Agent", "a"}, {"User-Agent", "b"}};
  EXPECT_EQ(describe({.target = "/", .fields = agents}),
            "header User-Agent is invalid: the header comes twice");
  EXPECT_EQ(describe({.target = "/a;b"}),
            "the original request is invalid: some servers begin a parameter at ';' in the path "
            "(path_parameters says what yours do)");
}

TEST(Mapper, ListsMayBeLong) {
  std::string file;
  for (int i = 0; i < 100'000; ++i)
    file += "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
            std::to_string(i & 255) + "\n";
  MappingRig rig(
      "trusted_proxies: [127.0.0.1]\nmappings:\n- refuse:\n  - {client_address: true, "
      "networks_file: "
      "all}\n",
      {{"all", file}});
  const Fields last = {{"X-Forwarded-For", "10.1.134.159"}};  // 99,999
  const Fields next = {{"X-Forwarded-For", "10.1.134.160"}};
  EXPECT_EQ(rig.Map({.fields = last}), "refused");
  EXPECT_EQ(rig.Map({.fields = next}), "");
}

TEST(Mapper, OneHeaderMakesAMapping) {
  MappingRig rig(MappingOfHeader("X-API-Key"));
  const Fields fields = {{"x-api-key", "k1"}};
  EXPECT_EQ(rig.Map({.fields = fields}), "api_key=k1");
  EXPECT_EQ(rig.Map({}), "missing api_key");
  EXPECT_TRUE(rig.set->Trusts({.peer = Ip("203.0.113.1")}));
  EXPECT_TRUE(rig.set->mappings.front().require_rule);
}

TEST(Mapper, ClientOfTheOwnProxyMakesAMapping) {
  const Fields fields = {{"x-client-id", "ann"}};
  MappingRig by_header(MappingOfClient("X-Client-Id"));
  EXPECT_EQ(by_header.Map({.fields = fields, .client = Ip("192.0.2.1")}), "client=ann");
  EXPECT_EQ(by_header.Map({}), "") << "without an id there is no descriptor";
  const Fields twice = {{"x-client-id", "ann"}, {"x-client-id", "bob"}};
  EXPECT_EQ(by_header.Map({.fields = twice}), "invalid client");
  MappingRig by_address(MappingOfClient(""));
  EXPECT_EQ(by_address.Map({.client = Ip("192.0.2.1")}), "client=192.0.2.1");
}

TEST(Mapper, SaysWhetherThePathCounts) {
  const auto set = Valid(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\nmappings:\n"
      "- method: PUT\n- path: /a\n- descriptors:\n  - entries: [{key: k, header: X-Key}]\n");
  Mapper mapper;
  mapper.Use(*set);
  EXPECT_FALSE(mapper.Map({.method = "PUT", .target = "/a"}, 0).has_read_path);
  EXPECT_TRUE(mapper.Map({.method = "GET", .target = "/a"}, 0).has_read_path);
  EXPECT_TRUE(mapper.Map({.method = "GET", .target = "/b"}, 0).has_read_path);
}

TEST(MappingSet, TrustsOnlyTheProxiesThatAreListed) {
  const auto set = Valid("trusted_proxies: [10.0.0.0/8]\nmappings: []\n");
  EXPECT_TRUE(set->Trusts({.peer = Ip("10.1.2.3")}));
  EXPECT_FALSE(set->Trusts({.peer = Ip("127.0.0.1")}));
  EXPECT_FALSE(set->Trusts({})) << "a Unix socket";
  EXPECT_TRUE(Valid("trusted_proxies: [unix]\nmappings: []\n")->Trusts({}));
}

TEST(PathPattern, MatchesWholeSegments) {
  const auto matches = [](std::string_view pattern, std::string_view path) {
    const auto parsed = PathPattern::Parse(pattern);
    return parsed && parsed->Matches(path);
  };
  EXPECT_TRUE(matches("/login", "/login"));
  EXPECT_FALSE(matches("/login", "/login/"));
  EXPECT_FALSE(matches("/login", "/loginx"));
  EXPECT_TRUE(matches("/api/*", "/api/"));
  EXPECT_TRUE(matches("/api/*", "/api/a/b"));
  EXPECT_FALSE(matches("/api/*", "/api"));
  EXPECT_FALSE(matches("/api/*", "/apix/a"));
  EXPECT_TRUE(matches("/users/*/posts", "/users/7/posts"));
  EXPECT_FALSE(matches("/users/*/posts", "/users//posts"));
  EXPECT_FALSE(matches("/users/*/posts", "/users/7/8/posts"));
  EXPECT_TRUE(matches("*", "/"));
  EXPECT_TRUE(matches("*", "/a/b"));
  EXPECT_TRUE(matches("/", "/"));
  EXPECT_FALSE(matches("/", "/a"));
  EXPECT_TRUE(matches("/50%", "/50%"));
  EXPECT_TRUE(matches("/50%/*", "/50%/a"));
  EXPECT_TRUE(matches("/50%25", "/50%"));
  EXPECT_FALSE(matches("/50%25", "/50%25"));
  EXPECT_TRUE(matches("/50%2525", "/50%25"));
  EXPECT_TRUE(matches("/%2541/*", "/%41/a"));
  for (const std::string_view pattern :
       {"", "login", "/a*", "/a//b", "/a/../b", "/a%2fb", "**", "/a?b", "/a#b", "/50%41", "/%61"}) {
    EXPECT_FALSE(PathPattern::Parse(pattern)) << pattern;
  }
}

}  // namespace mapping_test
}  // namespace headgate::mapping
