#include "headgate/mapping/mapping_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "headgate/jwt/test_signer.h"
#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace mapping_file_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All problems as text.
std::string Problems(std::string_view text, const Files& files = {}) {
  const LoadedMappings loaded = Load(text, files);
  EXPECT_EQ(loaded.set == nullptr, !loaded.problems.empty());
  for (const rule::Problem& problem : loaded.problems)
    EXPECT_NE(problem.hint, "") << rule::PlaceAndMessage(problem);
  return Describe(loaded.problems);
}

// A valid beginning.
std::string With(std::string_view rest) {
  return "trusted_proxies: [127.0.0.1]\noriginal_request: x-forwarded\n" + std::string(rest);
}

TEST(MappingFile, ReportsAllProblemsWithTheirPlaces) {
  const std::string problems = Problems(
      "trusted_proxies: [10.0.0.1/8, x]\n"
      "trusted_hops: 0\n"
      "forwarding_header: x-real-ip\n"
      "maping: []\n"
      "mappings:\n"
      "- path: /a%2fb\n"
      "  descriptors:\n"
      "  - cost: -1\n"
      "    entries:\n"
      "    - {header: X-Key}\n"
      "    - {key: k}\n"
      "    - {key: k, header: a, cookie: b}\n");
  for (const std::string_view expected :
       {"auth.yaml:1:19: '10.0.0.1/8' is not a network", "auth.yaml:1:31: 'x' is not a network",
        "auth.yaml:2:15: 'trusted_hops' of the file is not a whole number from 1 to 32",
        "auth.yaml:3:20: 'forwarding_header' cannot be 'x-real-ip'",
        "hint: it is one of x-forwarded-for, forwarded, none",
        "auth.yaml:4:1: the file has no word 'maping'", "did you mean 'mappings'?",
        "auth.yaml:6:9: '/a%2fb' matches no path",
        "auth.yaml:6:3: conditions on path, method and host need original_request",
        "auth.yaml:8:11: 'cost' of a descriptor is not a whole number from 0",
        "auth.yaml:10:7: an entry has no key",
        "auth.yaml:11:7: exactly one attribute is needed here"}) {
    EXPECT_THAT(problems, HasSubstr(expected));
  }
}

TEST(MappingFile, RefusesAHostThatNoRequestHas) {
  const auto problems_with = [](std::string_view host) {
    return Problems(With("mappings:\n- host: " + std::string(host) + "\n"));
  };
  for (const std::string_view host : {"'example.com:80'",
                                      "'*.example.com:80'",
                                      "'a b'",
                                      "'*.'",
                                      "'::1'",
                                      "'[::1]:80'",
                                      "'http://example.com'",
                                      "'*'",
                                      "'a.*'",
                                      "'*a.example.com'",
                                      "'*.*.example.com'",
                                      "'a.*.com'",
                                      "'*.192.0.2.1'",
                                      "'*.[::1]'",
                                      "'.example.com'",
                                      "'a.com,b.com'",
                                      "'a.com, b'",
                                      "'(a|b).com'",
                                      "'$host'",
                                      "'m\u00fcnchen.de'",
                                      "'[example.com]'",
                                      "'10.0.0.0/8'"}) {
    EXPECT_THAT(problems_with(host), HasSubstr("auth.yaml:4:9: ")) << host;
    EXPECT_THAT(problems_with(host), HasSubstr("matches no host")) << host;
  }
  for (const std::string_view host : {"Example.com", "example.com.", "'*.example.com'", "'[::1]'",
                                      "192.0.2.1", "'*.Example.com.'", "a_b.example.com", "xn--a"})
    EXPECT_EQ(problems_with(host), "") << host;
  EXPECT_THAT(problems_with("'*'"), HasSubstr("hint: leave host out to match every host"));
  EXPECT_THAT(problems_with("'a.*'"), HasSubstr("whole first label of a name, as in *.example"));
  EXPECT_THAT(problems_with("m\u00fcnchen.de"), HasSubstr("hint: write the name as requests have"));
  EXPECT_THAT(problems_with("[a.com, '*']"), HasSubstr("auth.yaml:4:17: '*' matches no host"));
}

TEST(MappingFile, RefusesAMethodThatNoRequestHas) {
  const auto problems_with = [](std::string_view method) {
    return Problems(With("mappings:\n- method: " + std::string(method) + "\n"));
  };
  for (const std::string_view method :
       {"get", "Get", "'*'", "'GET, POST'", "'GET POST'", "GET|POST", "'!GET'", "'GET*'", "'POST '",
        "GE\u0301T", "3GET"}) {
    EXPECT_THAT(problems_with(method), HasSubstr("auth.yaml:4:11: ")) << method;
    EXPECT_THAT(problems_with(method), HasSubstr("matches no method")) << method;
  }
  for (const std::string_view method : {"GET", "[GET, POST]", "M-SEARCH", "MY_METHOD2"})
    EXPECT_EQ(problems_with(method), "") << method;
  EXPECT_THAT(problems_with("[Get, POST]"),
              HasSubstr("'Get' matches no method\n  hint: methods are written in upper case: GET"));
  EXPECT_THAT(problems_with("'*'"), HasSubstr("hint: leave method out to match every method"));
  EXPECT_THAT(problems_with("'GET, POST'"), HasSubstr("a list: method: [GET, POST]"));
}

TEST(MappingFile, RefusesAPathWithAQuery) {
  EXPECT_THAT(Problems(With("mappings:\n- path: '/search?q=*'\n")),
              HasSubstr("auth.yaml:4:9: '/search?q=*' matches no path"));
}

TEST(MappingFile, AListFileMayBeginWithAByteOrderMark) {
  const std::string list = With("mappings:\n- refuse: [{method: true, values_file: bad}]\n");
  EXPECT_EQ(Problems(list, {{"bad", "\xef\xbb\xbfGET\r\nPOST\r\n"}}), "");
  EXPECT_EQ(Problems(list, {{"bad", "\xef\xbb\xbf# from Windows\nGET\n"}}), "");
  EXPECT_THAT(Problems(list, {{"bad", "\xef\xbb\xbfGET\nget\n"}}),
              HasSubstr("line 2 of 'bad': the method is never 'get'"));
  EXPECT_EQ(Problems(With("mappings:\n- refuse: [{client_address: true, networks_file: bad}]\n"),
                     {{"bad",
                       "\xef\xbb\xbf"
                       "10.0.0.0/8\n"}}),
            "");
}

TEST(MappingFile, RefusesANameThatNoHeaderOrCookieHas) {
  const auto problems_with = [](std::string_view attribute) {
    return Problems(With("mappings:\n- exempt: [{" + std::string(attribute) + ", values: [a]}]\n"));
  };
  for (const std::string_view header : {"'X-API-Key:'", "'X API Key'", "' X-Key'", "':authority'"})
    EXPECT_THAT(problems_with("header: " + std::string(header)), HasSubstr("is not the name of a"))
        << header;
  for (const std::string_view cookie : {"'sid='", "'a;b'", "' sid'"})
    EXPECT_THAT(problems_with("cookie: " + std::string(cookie)), HasSubstr("is not the name of a"))
        << cookie;
  EXPECT_EQ(problems_with("header: x_api-key"), "");
  EXPECT_EQ(problems_with("cookie: 'user[id]'"), "");
  EXPECT_THAT(Problems(With("idempotency_header: 'X Id'\nmappings: []\n")),
              HasSubstr("auth.yaml:3:21: 'X Id' is not the name of a header"));
  EXPECT_THAT(Problems(With("jwt:\n- {unverified: true, header: 'Authorization:'}\n"
                            "- {unverified: true, cookie: 'a=b'}\nmappings: []\n")),
              AllOf(HasSubstr("'Authorization:' is not the name of a header"),
                    HasSubstr("'a=b' is not the name of a cookie")));
  EXPECT_THAT(Problems(With("mappings:\n- descriptors:\n  - entries: [{key: k, geohash: 5, "
                            "latitude_header: 'X:', longitude_header: Lon}]\n")),
              HasSubstr("'X:' is not the name of a header"));
}

TEST(MappingFile, RefusesAListValueThatNoRequestHas) {
  const auto problems_with = [](std::string_view attribute, std::string_view value) {
    const std::string begin = "jwt: [{unverified: true}]\nmappings:\n- refuse:\n  - {";
    const std::string list = begin + std::string(attribute);
    const std::string in_file =
        Problems(With(list + ", values_file: bad}\n"), {{"bad", "# x\n" + std::string(value)}});
    const std::string here = Problems(With(list + ", values: ['" + std::string(value) + "']}\n"));
    // In a file, spaces around a line do not count, and # begins a comment.
    if (!value.starts_with(' ') && !value.ends_with(' ') && value.find('#') == value.npos) {
      EXPECT_EQ(in_file.empty(), here.empty()) << attribute << " " << value;
    }
    if (!in_file.empty()) {
      EXPECT_THAT(in_file, HasSubstr("line 2 of 'bad': "));
    }
    return here;
  };
  struct Case {
    std::string_view attribute;
    std::vector<std::string_view> possible;
    std::vector<std::string_view> impossible;
  };
  const std::string_view geohash = "geohash: 5, latitude_header: Lat, longitude_header: Lon";
  for (const Case& c :
       std::vector<Case>{{"method: true", {"GET", "M-SEARCH"}, {"get", "Post", "*", "GET,POST"}},
                         {"host: true",
                          {"example.com", "192.0.2.1", "[2001:db8::1]"},
                          {"Example.com", "example.com.", "example.com:80", "*.example.com", "*",
                           "::1", "[2001:DB8::1]"}},
                         {"path: true",
                          {"/", "/a/b", "/a/", "/caf\u00e9", "/50%", "/50%/a", "/%", "/%4", "/%zz",
                           "/%%", "/50%25", "/%2541", "/%25"},
                          {"a", "/a//b", "/a/../b", "/a/*", "*", "/a?q=1", "/%61", "/%25%41",
                           "/a#b", "/50%/../b", "/50%//b", "50%"}},
                         {"path_prefix: 2",
                          {"/", "/a", "/a/", "/a/b", "/50%/b", "/%2541/b"},
                          {"/a/b/", "/a/b/c", "a/b", "/a/*", "/50%41"}},
                         {"path_segment: 2",
                          {"b", "a.b", "50%", "50%25", "%2541", "C#"},
                          {"/b", "a/b", "..", ".", "%61", "50%41", "*"}},
                         {geohash, {"u4pru"}, {"u4pr", "u4prua", "u4pra", "U4PRU"}},
                         {"header: X-Key", {"a b", "*"}, {" a", "a "}},
                         {"cookie: sid",
                          {"a b", "x=y", "s:a;b", "caf\u00e9", "50%", " a", "a ", " "},
                          {"s%3Aa", "%62ad", "%ff", "%20a"}},
                         {"query: q", {"a b", "caf\u00e9", "*"}, {}},
                         {"claim: sub", {"mallory", "a b"}, {}},
                         {"value: gold", {"gold"}, {"silver"}}}) {
    for (const std::string_view value : c.possible)
      EXPECT_EQ(problems_with(c.attribute, value), "") << c.attribute << " " << value;
    for (const std::string_view value : c.impossible) {
      EXPECT_THAT(problems_with(c.attribute, value), HasSubstr("is never '" + std::string(value)))
          << c.attribute << " " << value;
    }
  }
  EXPECT_THAT(problems_with("host: true", "Example.com."), HasSubstr("normalized: example.com\n"));
  EXPECT_THAT(problems_with("path: true", "/a/./b"), HasSubstr("normalized: /a/b\n"));
  EXPECT_THAT(problems_with("path: true", "/./50%25"), HasSubstr("normalized: /50%\n"));
  EXPECT_THAT(problems_with("path: true", "/%61"), HasSubstr("normalized: /a\n"));
  EXPECT_THAT(problems_with("path: true", "/./%2541"), HasSubstr("normalized: /%2541\n"));
  EXPECT_THAT(problems_with("cookie: sid", "%20a"), HasSubstr("decoded; write +a\n"));
}

TEST(MappingFile, RefusesAMappingThatNoRequestReaches) {
  const auto problems_with = [](std::string_view earlier, std::string_view later) {
    return Problems(With("mappings:\n- {name: first, " + std::string(earlier) +
                         "}\n- {name: last, " + std::string(later) + "}\n"));
  };
  using Pair = std::pair<std::string_view, std::string_view>;
  for (const auto& [earlier, later] :
       std::vector<Pair>{{"descriptors: []", "path: /a"},
                         {"path: '*'", "method: GET"},
                         {"path: /*", "path: /"},
                         {"path: /api/*", "path: /api/login"},
                         {"path: /api/*", "path: [/api/, /api/users/*, /api/a/*/b]"},
                         {"path: /users/*/posts", "path: /users/7/posts"},
                         {"method: [GET, POST]", "method: POST, path: /a"},
                         {"host: '*.example.com'", "host: ['*.a.example.com', b.example.com]"},
                         {"host: a.com, path: '*'", "host: a.com, method: GET"}}) {
    EXPECT_THAT(
        problems_with(earlier, later),
        AllOf(HasSubstr("auth.yaml:5:3: no request reaches 'last': 'first' fits all of its"),
              HasSubstr("hint: the first mapping that fits decides; move this one before")))
        << earlier << " / " << later;
  }
  // Neither could stand in front of the other.
  for (const std::string_view same : {"descriptors: []", "path: /users/*/posts", "path: '*'"}) {
    EXPECT_THAT(problems_with(same, same),
                AllOf(HasSubstr("no request reaches 'last': 'first' fits all of its"),
                      HasSubstr("hint: both fit the same requests")))
        << same;
  }
  for (const auto& [earlier, later] :
       std::vector<Pair>{{"path: /api/login", "path: /api/*"},
                         {"path: /api/*", "path: /api"},
                         {"path: /api/*", "path: [/api/a, /b]"},
                         {"path: /api/*", "method: GET"},
                         {"path: /users/*/posts", "path: /users/*"},
                         {"path: /users/*/posts", "path: /users/*/*"},
                         {"path: '*', method: GET", "path: /a"},
                         {"host: '*.example.com'", "host: example.com"},
                         {"host: a.example.com", "host: '*.example.com'"},
                         {"host: example.com", "path: /a"},
                         {"method: GET", "method: [GET, POST]"}}) {
    EXPECT_EQ(problems_with(earlier, later), "") << earlier << " / " << later;
  }
}

TEST(MappingFile, AProblemIsReportedOnce) {
  const auto count = [](std::string_view rest) { return Load(With(rest), {}).problems.size(); };
  EXPECT_EQ(count("mappings:\n- path: a/*\n- path: /a\n"), 1u) << "all requests reach the second";
  EXPECT_EQ(count("mappings:\n- refuse: [{values: [a]}]\n"), 1u);
  EXPECT_EQ(count("mappings:\n- refuse: [{value: '', values: [a]}]\n"), 1u);
  EXPECT_EQ(count("mappings:\n- refuse: [{path_prefix: 0, values: [/a/b]}]\n"), 1u);
  EXPECT_EQ(count("mappings:\n- refuse: [{geohash: 0, latitude_header: A, longitude_header: B, "
                  "values: [u4pru]}]\n"),
            1u);
}

TEST(MappingFile, IssuersHaveDifferentNames) {
  EXPECT_THAT(Problems(With("jwt:\n- {name: a, unverified: true}\n"
                            "- {name: a, unverified: true}\nmappings: []\n")),
              HasSubstr("auth.yaml:5:10: two items of jwt have the name 'a'"));
}

TEST(MappingFile, NobodyIsTrustedUnlessTheFileSaysSo) {
  EXPECT_THAT(Problems("mappings: []\n"), HasSubstr("trusted_proxies is missing"));
}

TEST(MappingFile, RefusesWhatIsNoMapping) {
  for (const std::string_view text : {"", "[]", "a", "mappings", "mappings: {}", "mappings: [1]",
                                      "{", "mappings: []\nmappings: []\n"}) {
    EXPECT_NE(Problems(text), "") << text;
  }
}

// Problems() expects a hint of each problem.
TEST(MappingFile, EveryProblemHasAHint) {
  const auto one = [](std::string_view entry) {
    return "mappings:\n- descriptors:\n  - entries: [" + std::string(entry) + "]\n";
  };
  const auto jwt = [](std::string_view words) {
    return "jwt:\n- {" + std::string(words) + "}\nmappings: []\n";
  };
  for (const std::string& rest : std::vector<std::string>{
           "trusted_hops: 0\nmappings: []\n",
           "ipv6_prefix: 129\nmappings: []\n",
           "domain: \nmappings: []\n",
           "domain: [a]\nmappings: []\n",
           "[a]: b\nmappings: []\n",
           "mappings: []\nmappings: []\n",
           "mappings: 3\n",
           "mappings: [3]\n",
           jwt("jwks_file: nowhere"),
           jwt("jwks_file: empty"),
           jwt("secret_file: empty"),
           jwt("secret_file: nowhere"),
           jwt("secret_file: empty, algorithm: none"),
           jwt("unverified: true, header: a, cookie: b"),
           jwt("unverified: maybe"),
           jwt("unverified: true, leeway: 2m"),
           "mappings:\n- exempt: [{client_address: true, networks_file: nowhere}]\n",
           "mappings:\n- exempt: [{client_address: true}]\n",
           "mappings:\n- exempt: [{header: X}]\n",
           "mappings:\n- exempt: [{header: X, values: []}]\n",
           "mappings:\n- exempt: [{header: X, values: [[a]]}]\n",
           "mappings:\n- status: {denied: 200}\n",
           "mappings:\n- status: 429\n",
           "mappings:\n- descriptors:\n  - {cost: -1, entries: [{key: k, value: v}]}\n",
           one("{key: k, geohash: 13, latitude_header: a, longitude_header: b}"),
           one("{key: k, geohash: 5}"),
           one("{key: k, path_prefix: 0}"),
           one("{key: k, path_segment: 33}"),
           one("{key: k, path: false}"),
           one("{key: k, claim: sub}"),
           one("{key: k}")}) {
    EXPECT_NE(Problems(With(rest), {{"empty", ""}}), "") << rest;
  }
}

TEST(MappingFile, StatusesCanBeSet) {
  const auto set = Valid(With("mappings:\n- status: {denied: 403, missing: 499, invalid: 422}\n"));
  const Statuses& statuses = set->mappings.front().statuses;
  EXPECT_EQ(statuses.denied, 403);
  EXPECT_EQ(statuses.missing, 499);
  EXPECT_EQ(statuses.invalid, 422);
  EXPECT_EQ(statuses.unavailable, 503);
  EXPECT_THAT(Problems(With("mappings:\n- status: {denied: 200}\n")), HasSubstr("from 400 to 599"));
}

TEST(MappingFile, AListHasItemsOfItsKind) {
  EXPECT_THAT(Problems(With("mappings:\n- exempt: [{client_address: true, values: [a]}]\n")),
              HasSubstr("a list of the client's address has networks or networks_file"));
  EXPECT_THAT(Problems(With("mappings:\n- exempt: [{header: X, networks: [10.0.0.0/8]}]\n")),
              HasSubstr("a list of header X has values or values_file"));
  EXPECT_THAT(Problems(With("mappings:\n- exempt: [{header: X}]\n")), HasSubstr("has values"));
  EXPECT_THAT(Problems(With("mappings:\n- exempt: [{client_address: true, networks_file: f}]\n"),
                       {{"f", "10.0.0.0/8\n# office\nten\n"}}),
              HasSubstr("line 3 of 'f': 'ten' is not a network"));
}

std::string Warnings(std::string_view text, const Files& files = {}) {
  const LoadedMappings loaded = Load(text, files);
  EXPECT_NE(loaded.set, nullptr) << Describe(loaded.problems);
  return Describe(loaded.warnings);
}

TEST(MappingFile, APlaceholderOfAFrameworkIsAProblem) {
  for (const std::string_view path :
       {"/users/{id}", "/users/:id", "/users/<int:id>/posts", "/users/[id]"}) {
    const std::string file = "mappings:\n- path: \"" + std::string(path) + "\"\n";
    EXPECT_THAT(Problems(With(file)),
                AllOf(HasSubstr("has a placeholder"), HasSubstr("write * for one segment")));
    const std::string list =
        "mappings:\n- refuse: [{path: true, values: [\"" + std::string(path) + "\"]}]\n";
    EXPECT_THAT(Problems(With(list)), HasSubstr("no placeholders"));
  }
  EXPECT_EQ(Problems(With("mappings:\n- path: [\"/users:batch\", \"/a{b\", \"/:\"]\n")), "");
}

TEST(MappingFile, WarnsOfRequestsThatPassUncounted) {
  EXPECT_THAT(Warnings(With("mappings: []\n")),
              HasSubstr("auth.yaml:3:11: there are no mappings: every request passes"));
  EXPECT_THAT(Warnings(With("mappings:\n- path: /login\n- path: /a\n  method: GET\n")),
              HasSubstr("auth.yaml:5:3: requests that fit no mapping pass and are not counted"));
  for (const std::string_view all : {"- path: \"*\"\n", "- descriptors: []\n"}) {
    EXPECT_EQ(Warnings(With("mappings:\n- path: [/login, /login/]\n" + std::string(all))), "")
        << all;
  }
}

TEST(MappingFile, WarnsIfStrangersAreTrusted) {
  const auto warnings = [](std::string_view network) {
    return Warnings("trusted_proxies: [127.0.0.1, \"" + std::string(network) +
                    "\"]\nmappings:\n- descriptors: []\n");
  };
  for (const std::string_view wide : {"0.0.0.0/0", "::/0", "128.0.0.0/1", "2000::/3", "8.0.0.0/7"})
    EXPECT_THAT(warnings(wide), HasSubstr("auth.yaml:1:30: trusted_proxies has '" +
                                          std::string(wide) + "': strangers"));
  for (const std::string_view own : {"10.0.0.0/8", "fc00::/16", "192.0.2.1", "unix"})
    EXPECT_EQ(warnings(own), "") << own;
}

TEST(MappingFile, WarnsOfKeysThatAreNotUsed) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const std::string keys = R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"w"},)" +
                           signer.PublicKey(R"(,"kid":"a")") + "]}";
  EXPECT_THAT(
      Warnings(With("jwt:\n- {jwks_file: k}\nmappings:\n- descriptors: []\n"), {{"k", keys}}),
      HasSubstr("auth.yaml:4:15: keys[0] is not used: an RSA modulus"));
}

TEST(MappingFile, NamesTheFilesThatItReads) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const LoadedMappings loaded =
      Load(With("jwt:\n- {jwks_file: keys.json}\nmappings:\n- exempt:\n  - {client_address: true, "
                "networks_file: office.txt}\n"),
           {{"keys.json", signer.KeySet()}, {"office.txt", ""}});
  EXPECT_NE(loaded.set, nullptr);
  EXPECT_THAT(loaded.files, ElementsAre("keys.json", "office.txt"));
  const LoadedMappings missing = Load(With("jwt:\n- {jwks_file: keys.json}\nmappings: []\n"));
  EXPECT_THAT(Describe(missing.problems), HasSubstr("auth.yaml:4:15: no such file: keys.json"));
  EXPECT_THAT(missing.files, ElementsAre("keys.json"));
}

TEST(MappingFile, ATokenNeedsAKeyUnlessTheFileSaysUnverified) {
  const std::string_view none = "jwt:\n- {name: a}\nmappings: []\n";
  EXPECT_THAT(Problems(With(none)), HasSubstr("tokens need either jwks_file or secret_file"));
  EXPECT_EQ(Problems(With("jwt:\n- {unverified: true}\nmappings: []\n")), "");
  EXPECT_THAT(Problems(With("jwt:\n- {unverified: true, secret_file: s}\nmappings: []\n"),
                       {{"s", std::string(32, 's')}}),
              HasSubstr("unverified tokens need no key"));
  EXPECT_THAT(Problems(With("jwt:\n- {secret_file: s}\nmappings: []\n"), {{"s", "short\n"}}),
              HasSubstr("a secret for HS256 has at least 32 bytes, this one has 5"));
  EXPECT_THAT(Problems(With("jwt:\n- {jwks_file: s}\nmappings: []\n"), {{"s", "{}"}}),
              HasSubstr("not a JSON Web Key Set"));
  EXPECT_THAT(Problems(With("mappings:\n- descriptors:\n  - entries: [{key: k, claim: sub}]\n")),
              HasSubstr("claim needs an issuer of tokens"));
}

TEST(MappingFile, ClaimsComeFromVerifiedTokens) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  MappingRig rig(With("jwt:\n"
                      "- {name: main, jwks_file: keys.json, issuer: https://id, leeway: 0s}\n"
                      "- {name: session, cookie: session, secret_file: secret}\n"
                      "mappings:\n"
                      "- descriptors:\n"
                      "  - entries: [{key: user, claim: sub, jwt: main}, {key: plan, claim: [app, "
                      "plan], jwt: main}]\n"),
                 {{"keys.json", signer.KeySet()}, {"secret", std::string(32, 's') + "\n"}});
  const std::string token =
      signer.Sign(R"({"iss":"https://id","sub":"ann","app":{"plan":"gold"},"exp":1000})");
  const auto map = [&](const std::string& authorization, int64_t now_s) {
    const std::vector<HeaderField> fields = {{"Authorization", authorization}};
    return rig.Map({.fields = fields}, now_s);
  };
  EXPECT_EQ(map("Bearer " + token, 999), "user=ann,plan=gold");
  EXPECT_EQ(map("bearer " + token, 999), "user=ann,plan=gold");
  EXPECT_EQ(map("Bearer " + token, 1000), "missing user") << "expired, though it was kept";
  EXPECT_EQ(map("Bearer " + token + "x", 999), "missing user");
  EXPECT_EQ(map("Basic YTpi", 999), "missing user");
  EXPECT_EQ(map("Bearer " + signer.Sign(R"({"iss":"https://id","sub":"ann"})"), 999),
            "missing plan");
  const std::vector<HeaderField> twice = {{"Authorization", token}, {"Authorization", token}};
  EXPECT_EQ(rig.Map({.fields = twice}, 1), "invalid user");
}

// A client must not get rid of its token by sending it twice.
TEST(MappingFile, ATokenThatComesTwiceIsInvalidWhereverItIsRead) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const std::string token = signer.Sign(R"({"sub":"mallory"})");
  const std::string bearer = "Bearer " + token;
  const std::string cookie = "session=" + token;
  const std::string two_cookies = cookie + "; " + cookie;
  using Fields = std::vector<HeaderField>;
  struct Case {
    std::string_view place;
    Fields once;
    std::vector<Fields> twice;
  };
  const std::vector<Case> cases = {
      {"",
       {{"Authorization", bearer}},
       {{{"Authorization", bearer}, {"authorization", bearer}},
        {{"Authorization", bearer}, {"Authorization", ""}}}},
      {", header: X-Token", {{"X-Token", token}}, {{{"X-Token", token}, {"x-token", "other"}}}},
      {", cookie: session",
       {{"Cookie", cookie}},
       {{{"Cookie", two_cookies}}, {{"Cookie", cookie}, {"Cookie", cookie}}}}};
  const std::string_view list = "[{claim: sub, values: [mallory]}]\n";
  for (const Case& c : cases) {
    const auto rig = [&](const std::string& mapping) {
      return MappingRig(With("jwt:\n- {jwks_file: keys.json" + std::string(c.place) +
                             "}\nmappings:\n- " + mapping),
                        {{"keys.json", signer.KeySet()}});
    };
    MappingRig refuse = rig("refuse: " + std::string(list));
    MappingRig exempt = rig("exempt: " + std::string(list));
    MappingRig optional =
        rig("descriptors:\n  - {entries: [{key: user, claim: sub}], optional: true}\n");
    EXPECT_EQ(refuse.Map({.fields = c.once}), "refused") << c.place;
    EXPECT_EQ(exempt.Map({.fields = c.once}), "exempt") << c.place;
    EXPECT_EQ(optional.Map({.fields = c.once}), "user=mallory") << c.place;
    for (const Fields& twice : c.twice) {
      EXPECT_EQ(refuse.Map({.fields = twice}), "invalid an attribute of a list") << c.place;
      EXPECT_EQ(exempt.Map({.fields = twice}), "invalid an attribute of a list") << c.place;
      EXPECT_EQ(optional.Map({.fields = twice}), "invalid user") << c.place;
    }
    EXPECT_EQ(optional.Map({}), "") << "no token: the descriptor is left out";
  }
}

// Backends read some tokens that are refused here. A client must not get rid of its token by such a
// spelling.
TEST(MappingFile, ATokenThatIsNotValidIsNotAsIfItWereAbsent) {
  const jwt::TestSigner signer(jwt::Algorithm::kEs256);
  const jwt::TestSigner stranger(jwt::Algorithm::kEs256);
  const std::string token = signer.Sign(R"({"sub":"mallory","exp":1000})");
  const auto rig = [&](const std::string& mapping) {
    return MappingRig(With("jwt:\n- {jwks_file: keys.json, leeway: 0s}\nmappings:\n- " + mapping),
                      {{"keys.json", signer.KeySet()}});
  };
  MappingRig refuse = rig("refuse: [{claim: sub, values: [mallory]}]\n");
  MappingRig exempt = rig("exempt: [{claim: sub, values: [mallory]}]\n");
  MappingRig optional =
      rig("descriptors:\n  - {entries: [{key: user, claim: sub}], optional: true}\n");
  const auto map = [](MappingRig& mappings, const std::string& value, int64_t now_s = 999) {
    const std::vector<HeaderField> fields = {{"Authorization", value}};
    return mappings.Map({.fields = fields}, now_s);
  };
  for (const std::string& value :
       {token, "Bearer  " + token, "Bearer \t " + token, "bearer\t" + token,
        "Bearer " + token + " ", " Bearer " + token + "\t"}) {
    EXPECT_EQ(map(refuse, value), "refused") << value;
    EXPECT_EQ(map(exempt, value), "exempt") << value;
    EXPECT_EQ(map(optional, value), "user=mallory") << value;
  }
  for (const std::string& value :
       {"Bearer " + token + "=", "Bearer " + token + " x", "Bearer, " + token, "Token " + token,
        "Bearer \"" + token + "\"", std::string("Bearer x"), std::string("x"),
        "Bearer " + stranger.Sign(R"({"sub":"mallory"})")}) {
    EXPECT_EQ(map(refuse, value), "invalid an attribute of a list") << value;
    EXPECT_EQ(map(exempt, value), "") << value;
    EXPECT_EQ(map(optional, value), "missing user") << value;
  }
  // The client is to fetch another token.
  EXPECT_EQ(map(refuse, "Bearer " + token, 1000), "missing an attribute of a list");
  EXPECT_EQ(map(exempt, "Bearer " + token, 1000), "");
  EXPECT_EQ(map(optional, "Bearer " + token, 1000), "missing user");
  // No token can be in these.
  for (const std::string value : {"", "Bearer", "Bearer ", "Basic YTpi", "Digest a=\"b.c\", d=e"}) {
    EXPECT_EQ(map(refuse, value), "") << value;
    EXPECT_EQ(map(optional, value), "") << value;
  }
}

TEST(MappingFile, AValidTokenOfAnotherIssuerIsNone) {
  const jwt::TestSigner ours(jwt::Algorithm::kEs256);
  const jwt::TestSigner theirs(jwt::Algorithm::kEs256);
  MappingRig rig(With("jwt:\n- {name: ours, jwks_file: ours}\n- {name: theirs, jwks_file: theirs}\n"
                      "mappings:\n- refuse:\n  - {claim: sub, jwt: ours, values: [mallory]}\n"
                      "  - {claim: sub, jwt: theirs, values: [eve]}\n  descriptors:\n"
                      "  - {entries: [{key: a, claim: sub, jwt: ours}], optional: true}\n"
                      "  - {entries: [{key: b, claim: sub, jwt: theirs}], optional: true}\n"),
                 {{"ours", ours.KeySet()}, {"theirs", theirs.KeySet()}});
  const auto map = [&](const std::string& token) {
    const std::string bearer = "Bearer " + token;
    const std::vector<HeaderField> fields = {{"Authorization", bearer}};
    return rig.Map({.fields = fields}, 1);
  };
  EXPECT_EQ(map(ours.Sign(R"({"sub":"ann"})")), "a=ann");
  EXPECT_EQ(map(theirs.Sign(R"({"sub":"ann"})")), "b=ann");
  EXPECT_EQ(map(ours.Sign(R"({"sub":"mallory"})")), "refused");
  EXPECT_EQ(map(theirs.Sign(R"({"sub":"eve"})")), "refused");
  EXPECT_EQ(map(theirs.Sign(R"({"sub":"eve"})") + "="), "invalid an attribute of a list");
}

// The proxy in this process sees the requests itself, so no other proxy has to describe them.
TEST(MappingFile, OfTheOwnProxyNeedsNeitherTrustNorADescription) {
  const auto load = [](Asker asker) {
    return LoadMappings(
        "map.yaml", "mappings:\n- path: /a\n  descriptors: []\n",
        [](const std::string&) { return absl::NotFoundError("no files"); }, asker);
  };
  EXPECT_THAT(Describe(load(Asker::kOtherProxy).problems),
              AllOf(HasSubstr("trusted_proxies is missing"),
                    HasSubstr("conditions on path, method and host need original_request")));
  const LoadedMappings own = load(Asker::kOwnProxy);
  ASSERT_NE(own.set, nullptr) << Describe(own.problems);
  EXPECT_EQ(own.set->original_request, OriginalRequest::kLine);
}

}  // namespace mapping_file_test
}  // namespace headgate::mapping
