#include "headgate/proxy/upstream/control_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::proxy::upstream {
namespace control_routes_test {

using ::testing::HasSubstr;

struct ControlRoutes : ::testing::Test {
  ControlRoutes() {
    AddControlRoutes({.mode = [this] { return mode; },
                      .set_mode = [this](share::Mode to) { mode = to; },
                      .upstreams = [this] { return upstreams; },
                      .set_upstreams = [this](List to) { upstreams = std::move(to); },
                      .names = [this] { return names; },
                      .addresses = [this] { return addresses; }},
                     router);
  }
  http::Response Ask(std::string_view method, std::string_view body = "") {
    http::Request request;
    request.method = method;
    request.target = "/v1/sidecar";
    request.body = body;
    request.fields = {{"Content-Type", "application/json"}};
    http::Response response;
    router.Handle(request, response, base::Instant::FromNanos(0));
    return response;
  }

  share::Mode mode = share::Mode::kEnforce;
  List upstreams = *ParseList("http://127.0.0.1:9000,unix:/run/s");
  std::vector<Names::State> names;
  std::vector<Health::Address> addresses;
  access::Access access;
  http::routing::Router router{"test", access};
};

TEST_F(ControlRoutes, ShowTheState) {
  EXPECT_EQ(Ask("GET").body,
            "{\"mode\":\"enforce\",\"upstream\":\"http://127.0.0.1:9000,unix:/run/s\"}\n");
}

TEST_F(ControlRoutes, ShowTheAddressesBehindNames) {
  upstreams = *ParseList("http://app:9000,http://b");
  names = {{.name = {.host = "app", .port = 9000},
            .addresses = {{.host = "10.0.0.7", .port = 9000}, {.host = "fd00::7", .port = 9000}}},
           {.name = {.host = "b", .port = 80}}};
  EXPECT_EQ(Ask("GET").body,
            "{\"mode\":\"enforce\",\"upstream\":\"http://app:9000,b:80\",\"names\":"
            "{\"app:9000\":[\"10.0.0.7:9000\",\"[fd00::7]:9000\"],\"b:80\":[]}}\n");
}

TEST_F(ControlRoutes, ShowTheHealthOfEachAddress) {
  addresses = {{.name = "10.0.0.7:9000", .in_progress = 3},
               {.name = "10.0.0.8:9000", .loops_aside = 1, .reason = "it failed active checks"}};
  EXPECT_THAT(Ask("GET").body,
              HasSubstr(R"("addresses":[{"address":"10.0.0.7:9000","health":"well",)"
                        R"("requests_in_progress":3},{"address":"10.0.0.8:9000",)"
                        R"("health":"set_aside","requests_in_progress":0,)"
                        R"("reason":"it failed active checks"}])"));
}

TEST_F(ControlRoutes, ChangeWhatTheBodyHas) {
  EXPECT_EQ(Ask("PATCH", R"({"mode":"passthrough"})").body,
            "{\"mode\":\"passthrough\",\"upstream\":\"http://127.0.0.1:9000,unix:/run/s\"}\n");
  EXPECT_EQ(Ask("PATCH", R"({"upstream":"http://[::1]:9001"})").body,
            "{\"mode\":\"passthrough\",\"upstream\":\"http://[::1]:9001\"}\n");
}

TEST_F(ControlRoutes, InvalidChangeChangesNothing) {
  for (const auto* body :
       {"", "[]", "{", R"({"mode":"shadow"})", R"({"mode":1})", R"({"upstream":"h2c://a"})",
        R"({"upstream":""})", R"({"capacity":"1"})", R"({"mode":"passthrough","upstream":"x"})"}) {
    const http::Response response = Ask("PATCH", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(response.body, HasSubstr("for example"));
  }
  EXPECT_EQ(mode, share::Mode::kEnforce);
  EXPECT_EQ(upstreams.targets.size(), 2u);
}

TEST_F(ControlRoutes, AnUnknownMemberIsNamedWhateverElseIsWrong) {
  for (const auto* body : {R"({"capacity":3})", R"({"capacity":"3"})",
                           R"({"mode":"shadow","capacity":3})", R"({"mode":1,"capacity":[]})"}) {
    EXPECT_THAT(Ask("PATCH", body).body,
                HasSubstr(R"(\"capacity\" cannot be changed while the sidecar runs; mode and )"
                          "upstream can"))
        << body;
  }
}

}  // namespace control_routes_test
}  // namespace headgate::proxy::upstream
