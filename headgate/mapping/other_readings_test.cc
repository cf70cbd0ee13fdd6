// Requests that applications read otherwise than a mapping could, and the clients who must not be
// hurt by that. readings_test.cc has the table.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/mapping/mapping_rig.h"

namespace headgate::mapping {
namespace other_readings_test {

using Fields = std::vector<HeaderField>;

constexpr std::string_view kHead = "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\n";

MappingRig Rig(std::string_view mappings, std::string_view more = "") {
  return MappingRig(std::string(kHead) + std::string(more) + "mappings:\n" + std::string(mappings));
}

MappingRig RigOf(std::string_view entry, std::string_view more = "") {
  return Rig("- descriptors: [{entries: [{key: k, " + std::string(entry) + "}]}]\n", more);
}

constexpr std::string_view kLogin =
    "- path: [/login, /login/]\n  descriptors: [{entries: [{key: k, value: login}]}]\n";

TEST(PathReadings, ALimitedPathIsNotReachedByAnotherSpelling) {
  MappingRig rig = Rig(kLogin);
  for (const std::string_view target :
       {"/login;x=1", "/login;jsessionid=AB", "/login;", "/;/login", "/x/..;/login",
        "/%2e%2e;/login", "/x/.%2e;y/login", "/login%3bx", "/login/;x", "//x/login",
        "//user@x/login", "///x/login", "//login", "/.//x/login", "/x/..//y/login"})
    EXPECT_EQ(rig.Map({.target = target}), "invalid the original request") << target;
  for (const std::string_view target : {"/login", "/%6cogin", "/login?a;b", "/login/", "/login//"})
    EXPECT_EQ(rig.Map({.target = target}), "k=login") << target;
  for (const std::string_view target : {"/", "/x", "/x//y?a;b=//c", "/login:x", "/x,y=z/@a"})
    EXPECT_EQ(rig.Map({.target = target}), "unmatched") << target;
}

TEST(PathReadings, DoNotMatterWhereNoMappingNeedsThePath) {
  MappingRig rig = RigOf("header: X-API-Key");
  const Fields fields = {{"X-API-Key", "k1"}};
  for (const std::string_view target : {"/a;x=1", "//x/a", "/a/..;/b", "/a/../b", "/%ff", "/?a;b"})
    EXPECT_EQ(rig.Map({.target = target, .fields = fields}), "k=k1") << target;
}

TEST(PathReadings, KeysAreNotMultipliedByParameters) {
  for (const std::string_view entry : {"path: true", "path_prefix: 2", "path_segment: 2"})
    EXPECT_EQ(RigOf(entry).Map({.target = "/a/b;n=7"}), "invalid k") << entry;
}

TEST(PathReadings, AnApplicationMayHaveMatrixParameters) {
  MappingRig strips = Rig(kLogin, "path_parameters: strip\n");
  EXPECT_EQ(strips.Map({.target = "/login;x=1"}), "k=login");
  EXPECT_EQ(strips.Map({.target = "/login;x=1/;y"}), "invalid the original request");
  EXPECT_EQ(strips.Map({.target = "/cars;color=red/4"}), "unmatched");
  EXPECT_EQ(strips.Map({.target = "/x/..;/login"}), "invalid the original request");
  EXPECT_EQ(strips.Map({.target = "/x/.;a=1/login"}), "invalid the original request");
  EXPECT_EQ(RigOf("path: true", "path_parameters: strip\n").Map({.target = "/a;n=1/b;n=2"}),
            "k=/a/b");
  MappingRig keeps = Rig("- path: /a;v=1\n  descriptors: [{entries: [{key: k, path: true}]}]\n",
                         "path_parameters: keep\n");
  EXPECT_EQ(keeps.Map({.target = "/a;v=1"}), "k=/a;v=1");
  EXPECT_EQ(keeps.Map({.target = "/a%3bv=1"}), "k=/a;v=1");
  EXPECT_EQ(keeps.Map({.target = "/x/..;/a"}), "invalid the original request");
  MappingRig refuses = Rig(kLogin, "path_parameters: refuse\n");
  EXPECT_EQ(refuses.Map({.target = "/login;x=1"}), "invalid the original request");
}

TEST(PathReadings, AListOfRefusalsIsNotEvaded) {
  MappingRig rig =
      Rig("- refuse: [{path_prefix: 1, values: [/admin]}]\n"
          "  exempt: [{path_prefix: 1, values: [/public]}]\n"
          "  descriptors: [{entries: [{key: k, value: all}]}]\n");
  EXPECT_EQ(rig.Map({.target = "/admin/x"}), "refused");
  EXPECT_EQ(rig.Map({.target = "/public/x"}), "exempt");
  for (const std::string_view target : {"/admin;a=1/x", "//h/admin/x", "/public/..;/admin",
                                        "/public;x/a", "/x/../public/x", "/admin/../public"})
    EXPECT_EQ(rig.Map({.target = target}), "invalid an attribute of a list") << target;
  for (const std::string_view target : {"/admin/./x", "/x/../admin/x", "/public/../admin/x"})
    EXPECT_EQ(rig.Map({.target = target}), "refused") << target;
  EXPECT_EQ(rig.Map({.target = "/public/a/../b"}), "exempt");
}

// Node.js, Rack and Python route `/search/../x` to what is below /search.
TEST(PathReadings, DotSegmentsThatChangeTheMappingOrTheKeyAreInvalid) {
  MappingRig rig =
      Rig("- path: [/search, /search/*]\n  descriptors: [{entries: [{key: k, value: search}]}]\n"
          "- path: [/t/*/x, /t/*/x/]\n  descriptors: [{entries: [{key: k, path_segment: 2}]}]\n");
  for (const std::string_view target :
       {"/search/../y", "/search/%2e%2e/y", "/y/../search/z", "/t/./x", "/t/a/../b/x", "/./search"})
    EXPECT_EQ(rig.Map({.target = target}), "invalid the original request") << target;
  for (const std::string_view target : {"/search/./y", "/search/a/../b", "/search/a/%2e%2e/b"})
    EXPECT_EQ(rig.Map({.target = target}), "k=search") << target;
  EXPECT_EQ(rig.Map({.target = "/y/./z"}), "unmatched");
  MappingRig keys = RigOf("path_segment: 2");
  EXPECT_EQ(keys.Map({.target = "/t/real/../decoy/x"}), "invalid k");
  EXPECT_EQ(keys.Map({.target = "/t/real/x/../y"}), "k=real");
  EXPECT_EQ(keys.Map({.target = "/t/.."}), "invalid k");
  // Tomcat reads /login there, and others /login/.
  MappingRig login = Rig("- path: /login\n");
  EXPECT_EQ(login.Map({.target = "/login/x/.."}), "invalid the original request");
  EXPECT_EQ(login.Map({.target = "/login/%2e"}), "invalid the original request");
  EXPECT_EQ(login.Map({.target = "/login/x/..", .is_path_normalized = true}), "unmatched");
  EXPECT_EQ(keys.Map({.target = "/t/real/../decoy/x", .is_path_normalized = true}), "k=decoy")
      << "the application gets /t/decoy/x";
  EXPECT_EQ(rig.Map({.target = "/search/../y", .is_path_normalized = true}), "unmatched");
}

// PHP runs /index.php for a path below it, and frameworks route the rest of the path.
TEST(PathReadings, AScriptInFrontOfAMappedPathIsInvalid) {
  MappingRig rig = Rig(
      "- path: [/login, /login/]\n  descriptors: [{entries: [{key: k, value: login}]}]\n"
      "- path: /pay.php\n  descriptors: [{entries: [{key: k, value: pay}]}]\n"
      "- path: [/api/*, /index.php/api/*]\n  descriptors: [{entries: [{key: k, value: api}]}]\n");
  for (const std::string_view target : {"/index.php/login", "/x.php/login", "/index.php/login/",
                                        "/pay.php/x", "/pay.php/", "/x.php/api/a"})
    EXPECT_EQ(rig.Map({.target = target}), "invalid the original request") << target;
  EXPECT_EQ(rig.Map({.target = "/index.php/login", .is_path_normalized = true}),
            "invalid the original request")
      << "in the sidecar, too";
  EXPECT_EQ(rig.Map({.target = "/pay.php"}), "k=pay");
  EXPECT_EQ(rig.Map({.target = "/index.php/api/a"}), "k=api") << "the mapping names both";
  for (const std::string_view target :
       {"/index.php", "/index.php/", "/index.php/other", "/blog/index.php/login",
        "/index.phpx/login", "/index.php/x/login", "/file.php.txt/login"})
    EXPECT_EQ(rig.Map({.target = target}), "unmatched") << target;
  MappingRig blog = Rig("- path: /blog/login\n");
  EXPECT_EQ(blog.Map({.target = "/blog/index.php/login"}), "invalid the original request");
}

TEST(PathReadings, AScriptDoesNotEvadeAListOfRefusals) {
  MappingRig rig =
      Rig("- refuse: [{path_prefix: 1, values: [/admin]}, {path: true, values: [/run.cgi]}]\n"
          "  exempt: [{path_prefix: 1, values: [/public]}]\n"
          "  descriptors: [{entries: [{key: k, value: all}]}]\n");
  for (const std::string_view target : {"/index.php/admin/x", "/admin/index.php/x", "/run.cgi/x"})
    EXPECT_EQ(rig.Map({.target = target}), "refused") << target;
  EXPECT_EQ(rig.Map({.target = "/index.php/public/x"}), "k=all") << "it is counted";
  EXPECT_EQ(rig.Map({.target = "/index.php/x"}), "k=all");
}

TEST(QueryReadings, AParameterHasOneValueInAllSpellings) {
  MappingRig rig = RigOf("query: api_key");
  for (const std::string_view query :
       {"api_key=d;api_key=r", "x=1;y=2&api_key=r", "api_key=d&api.key=r", "api_key=d&api%20key=r",
        "api_key=d&%20api_key=r", "api_key=d&api+key=r", "api_key=d&api%5Bkey=r",
        "api_key=d&api_key[]=r", "api_key=d&api_key%5B0%5D=r", "api_key[0]=d&api_key[1]=r",
        "api_key=d&%5Bapi_key%5D=r", "api_key=d&api_key%00=r", "api_key=d&Api_Key=r", "api_key=%ff",
        "api_key=a%00b"}) {
    const std::string target = "/?" + std::string(query);
    EXPECT_EQ(rig.Map({.target = target}), "invalid k") << query;
  }
  for (const std::string_view query :
       {"api_key=r", "api_key=r&ids[]=1&ids[]=2", "filter[api_key]=1&api_key=r",
        "api_key=r&key.api=1", "a=1&a=2&api_key=r", "q=%ff&api_key=r",
        "api_key=r&json={\"api_key\":1}", "api%2Dkey=1&api_key=r"}) {
    const std::string target = "/?" + std::string(query);
    EXPECT_EQ(rig.Map({.target = target}), "k=r") << query;
  }
}

TEST(QueryReadings, AnOptionalParameterIsNotLeftOutInAnotherSpelling) {
  MappingRig rig = Rig("- descriptors: [{entries: [{key: k, query: api_key}], optional: true}]\n");
  EXPECT_EQ(rig.Map({.target = "/?api.key=r"}), "k=r");
  EXPECT_EQ(rig.Map({.target = "/?api_key[]=r"}), "k=r");
  EXPECT_EQ(rig.Map({.target = "/?other=1"}), "");
}

TEST(CookieReadings, ACookieHasOneValueInAllSpellings) {
  MappingRig rig = RigOf("cookie: session_id");
  const auto map = [&](std::string_view line) {
    const Fields fields = {{"Cookie", line}};
    return rig.Map({.fields = fields});
  };
  for (const std::string_view line :
       {"session.id=r; session_id=d", "session_id=d session_id=r", "session_id=d, session_id=r",
        "session_id=d; x=1 session_id=r", "session_id=d; x=1,session_id=r",
        "session[id=r; session_id=d", "session_id=a b", "session_id=\"a b\"", "session_id=a,b"})
    EXPECT_EQ(map(line), "invalid k") << line;
  for (const std::string_view line :
       {"session_id=r", "a=1, 2; session_id=r", "a=x y; session_id=r; b={\"c\": 1, \"d\": 2}",
        "_ga=GA1.2.3.4; _gid=GA1.2.5.6; session_id=r", "session_id=r; consent=a%20b%2Cc",
        "x-session_id=q; session_id=r"})
    EXPECT_EQ(map(line), "k=r") << line;
  EXPECT_EQ(map("session_id=YWJjZA=="), "k=YWJjZA==");
  EXPECT_EQ(map("session_id=ab+c/d="), "k=ab+c/d=");
  const Fields joined = {{"Cookie", "a=1"}, {"Cookie", "session_id=r"}, {"Cookie", "b=2"}};
  EXPECT_EQ(rig.Map({.fields = joined}), "k=r");
}

TEST(CookieReadings, DoNotMatterWhereNoMappingNeedsTheCookie) {
  MappingRig rig = RigOf("header: X-API-Key");
  const Fields fields = {{"X-API-Key", "k1"}, {"Cookie", "a=b c=d, e; a=\"; a=\xff"}};
  EXPECT_EQ(rig.Map({.fields = fields}), "k=k1");
}

TEST(HeaderReadings, AFieldThatServersCouldTakeForAHeaderIsInvalid) {
  for (const std::string_view more : {"", ", optional: true"}) {
    MappingRig rig =
        Rig("- descriptors: [{entries: [{key: k, header: X-API-Key}]" + std::string(more) + "}]\n");
    for (const std::string_view name :
         {"X_API_Key", "X-API_Key", "x_api_key", "X.API.Key", "X+API+Key"}) {
      const Fields alone = {{name, "r"}};
      EXPECT_EQ(rig.Map({.fields = alone}), "invalid k") << name;
      const Fields both = {{"X-API-Key", "d"}, {name, "r"}};
      EXPECT_EQ(rig.Map({.fields = both}), "invalid k") << name;
    }
    const Fields others = {
        {"X-API-Key", "r"}, {"XAPIKey", "a"}, {"X_API", "b"}, {"Other_Field", "c"}};
    EXPECT_EQ(rig.Map({.fields = others}), "k=r");
  }
  const Fields fields = {{"User_Agent", "x"}, {"X-Key", "1"}};
  EXPECT_EQ(RigOf("header: X-Key").Map({.fields = fields}), "k=1");
  EXPECT_EQ(Rig("- refuse: [{header: User-Agent, values: [x]}]\n").Map({.fields = fields}),
            "invalid an attribute of a list");
}

TEST(HeaderReadings, AByteAbove7fIsInvalid) {
  MappingRig rig = RigOf("header: X-API-Key");
  for (const std::string_view value : {"k1\xa0", "\x85k1", "k1\xc2\xa0", "caf\xc3\xa9", "k\t1"}) {
    const Fields fields = {{"X-API-Key", value}};
    EXPECT_EQ(rig.Map({.fields = fields}), "invalid k") << value;
  }
  const Fields other = {{"X-API-Key", "k1"}, {"X-Name", "caf\xc3\xa9"}};
  EXPECT_EQ(rig.Map({.fields = other}), "k=k1") << "a header that nobody needs";
}

TEST(HeaderReadings, OneTokenHasOneKey) {
  for (const std::string_view name : {"Authorization", "Proxy-Authorization"}) {
    MappingRig by_header(MappingOfHeader(name));
    MappingRig by_client(MappingOfClient(name));
    for (const std::string_view value : {"Bearer k1", "bearer k1", "BEARER  k1", "Bearer\tk1"}) {
      const Fields fields = {{name, value}};
      EXPECT_EQ(by_header.Map({.fields = fields}), "api_key=Bearer k1") << value;
      EXPECT_EQ(by_client.Map({.fields = fields}), "client=Bearer k1") << value;
    }
    const Fields twice = {{name, "Bearer k1 k2"}};
    EXPECT_EQ(by_header.Map({.fields = twice}), "invalid api_key");
  }
  const Fields key = {{"X-API-Key", "bearer  k1"}};
  EXPECT_EQ(MappingRig(MappingOfHeader("X-API-Key")).Map({.fields = key}), "api_key=bearer  k1")
      << "another header has no scheme";
}

TEST(HeaderReadings, TwoFieldsThatTheProxyHasJoinedAreInvalid) {
  const std::string mappings =
      "mappings:\n- descriptors: [{entries: [{key: k, header: X-API-Key}]}]\n"
      "  exempt: [{header: User-Agent, values: [x]}]\n";
  const std::string head = "trusted_proxies: [10.0.0.0/8]\noriginal_request: ";
  MappingRig envoy(head + "request-line\n" + mappings);
  MappingRig other(head + "x-forwarded\n" + mappings);
  const Fields joined = {{"X-API-Key", "d,r"}};
  EXPECT_EQ(envoy.Map({.fields = joined}), "invalid k");
  EXPECT_EQ(other.Map({.fields = joined}), "k=d,r");
  EXPECT_EQ(MappingRig(MappingOfHeader("X-API-Key")).Map({.fields = joined}), "invalid api_key");
  const Fields browser = {
      {"X-API-Key", "r"},
      {"User-Agent", "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko)"},
      {"Accept", "text/html,*/*;q=0.8"}};
  EXPECT_EQ(envoy.Map({.fields = browser}), "k=r");
}

TEST(HeaderReadings, AListNamesCredentialsInAllSpellings) {
  MappingRig rig = Rig("- refuse: [{header: Authorization, values: [\"bearer bad\"]}]\n");
  for (const std::string_view value : {"Bearer bad", "bearer  bad", "BEARER bad"}) {
    const Fields fields = {{"Authorization", value}};
    EXPECT_EQ(rig.Map({.fields = fields}), "refused") << value;
  }
}

TEST(Bearer, IsTheTokenWhateverTheSchemeIs) {
  MappingRig rig = RigOf("bearer: true");
  const auto map = [&](std::string_view value) {
    const Fields fields = {{"Authorization", value}};
    return rig.Map({.fields = fields});
  };
  for (const std::string_view value : {"Bearer k1", "bearer  k1", "k1", "Foo k1"})
    EXPECT_EQ(map(value), "k=k1") << value;
  EXPECT_EQ(map("Bearer 1|aB-._~+/=="), "k=1|aB-._~+/==");
  EXPECT_EQ(map("Basic azpw"), "missing k");
  EXPECT_EQ(map("Bearer"), "missing k");
  EXPECT_EQ(map("Bearer k1 x"), "invalid k");
  EXPECT_EQ(map("Bearer k1\xa0"), "invalid k");
  EXPECT_EQ(rig.Map({}), "missing k");
  const Fields twice = {{"Authorization", "Bearer k1"}, {"authorization", "Bearer k1"}};
  EXPECT_EQ(rig.Map({.fields = twice}), "invalid k");
}

TEST(MethodReadings, HeadIsReadAsGet) {
  MappingRig rig =
      Rig("- path: [/login, /login/]\n  method: [GET, POST]\n"
          "  descriptors: [{entries: [{key: k, method: true}]}]\n"
          "- path: [/head, /head/]\n  method: HEAD\n  descriptors: [{entries: [{key: k, value: "
          "h}]}]\n");
  EXPECT_EQ(rig.Map({.method = "HEAD", .target = "/login"}), "k=GET");
  EXPECT_EQ(rig.Map({.method = "GET", .target = "/login"}), "k=GET");
  EXPECT_EQ(rig.Map({.method = "OPTIONS", .target = "/login"}), "unmatched");
  EXPECT_EQ(rig.Map({.method = "HEAD", .target = "/head"}), "k=h");
  EXPECT_EQ(rig.Map({.method = "GET", .target = "/head"}), "unmatched");
  MappingRig lists = Rig("- refuse: [{method: true, values: [GET]}]\n");
  EXPECT_EQ(lists.Map({.method = "HEAD"}), "refused");
  EXPECT_EQ(lists.Map({.method = "POST"}), "");
  MappingRig heads = Rig("- refuse: [{method: true, values: [HEAD]}]\n");
  EXPECT_EQ(heads.Map({.method = "HEAD"}), "refused");
  EXPECT_EQ(heads.Map({.method = "GET"}), "");
}

TEST(AddressReadings, AnIpv4AddressInsideAnIpv6AddressCounts) {
  MappingRig rig = RigOf("client_address: true");
  const auto map = [&](std::string_view chain) {
    const Fields fields = {{"X-Forwarded-For", chain}};
    return rig.Map({.fields = fields});
  };
  EXPECT_EQ(map("64:ff9b::203.0.113.7"), "k=203.0.113.7");
  EXPECT_EQ(map("64:ff9b::cb00:7108"), "k=203.0.113.8");
  EXPECT_EQ(map("64:ff9b::1:203.0.113.7"), "k=64:ff9b::/64") << "outside of the /96";
  EXPECT_EQ(map("64:ff9c::203.0.113.7"), "k=64:ff9c::/64");
  EXPECT_EQ(map("::ffff:0:203.0.113.7"), "k=203.0.113.7") << "translated";
  EXPECT_EQ(map("2002:cb00:7107:1::1"), "k=203.0.113.7") << "6to4";
  EXPECT_EQ(map("2002:cb00:7107:ffff::2"), "k=203.0.113.7");
  EXPECT_EQ(map("2001:0:c000:201:8000:63bf:34ff:8ef8"), "k=203.0.113.7") << "Teredo";
  EXPECT_EQ(map("2001:db8::1"), "k=2001:db8::/64");
  MappingRig lists = Rig("- refuse: [{client_address: true, networks: [203.0.113.0/24]}]\n");
  const Fields fields = {{"X-Forwarded-For", "64:ff9b::203.0.113.7"}};
  EXPECT_EQ(lists.Map({.fields = fields}), "refused");
  MappingRig translated = Rig("- refuse: [{client_address: true, networks: [\"64:ff9b::/96\"]}]\n");
  EXPECT_EQ(translated.Map({.fields = fields}), "refused") << "as proxies state it";
  EXPECT_EQ(rig.Map({.client = Ip("64:ff9b::203.0.113.7")}), "k=203.0.113.7");
}

// A proxy of this process removes what servers could take for these.
TEST(MappingSet, KnowsTheHeadersThatItReads) {
  const auto set = Valid(
      "trusted_proxies: [10.0.0.0/8]\njwt: [{unverified: true, header: X-Token}]\nmappings:\n"
      "- refuse: [{header: User-Agent, values: [x]}]\n  exempt: [{header: X-Job, values: [y]}]\n"
      "  descriptors:\n  - entries: [{key: a, header: X-API-Key}, {key: b, header: X-API-Key}]\n"
      "  - entries: [{key: g, geohash: 5, latitude_header: X-Lat, longitude_header: X-Lon}]\n");
  EXPECT_THAT(set->headers, ::testing::UnorderedElementsAre("X-Token", "User-Agent", "X-Job",
                                                            "X-API-Key", "X-Lat", "X-Lon"));
  EXPECT_THAT(MappingOfClient("X-Client-Id")->headers, ::testing::ElementsAre("X-Client-Id"));
}

}  // namespace other_readings_test
}  // namespace headgate::mapping
