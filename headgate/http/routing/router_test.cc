#include "headgate/http/routing/router.h"
#include "headgate/http/test_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate::http::routing {
namespace router_test {

using ::testing::HasSubstr;

constexpr base::Instant kNow = base::Instant::FromNanos(1);

struct Ask {
  std::string method = "GET";
  std::string target{};
  std::vector<std::pair<std::string_view, std::string_view>> fields{};
  bool loopback = true;
};

class HttpRouter : public ::testing::Test {
 protected:
  explicit HttpRouter(access::AccessOptions options = {}) : access(std::move(options)) {
    router.Add({.methods = {"GET"}, .path = "/get", .what = "gets", .handle = Answer("got")});
    router.Add({.methods = {"POST"}, .path = "/post", .what = "posts", .handle = Answer("posted")});
    router.Add({.methods = {"GET"},
                .path = "/state",
                .what = "state",
                .needs = access::Right::kAdmin,
                .handle = Answer("secret")});
    router.Add({.methods = {"GET"}, .path = "/both", .what = "both", .handle = Answer("got")});
    router.Add({.methods = {"POST"}, .path = "/both", .what = "both", .handle = Answer("posted")});
  }

  static decltype(Route::handle) Answer(std::string body) {
    return [body](const Request&, Response& response, base::Instant) { response.body = body; };
  }

  // The request views `ask`.
  static Request RequestOf(const Ask& ask) {
    Request request;
    request.method = ask.method;
    request.target = ask.target;
    request.fields = ask.fields;
    request.host = "localhost:8081";
    request.peer.loopback = ask.loopback;
    return request;
  }
  Response Handle(const Ask& ask) {
    const Request request = RequestOf(ask);
    Response response;
    router.Handle(request, response, kNow);
    return response;
  }

  access::Access access;
  Router router{"Headgate", access};
};

TEST_F(HttpRouter, RefusesPagesOfOtherSitesWhereMoreThanChecksAreAllowed) {
  const auto status = [&](std::string_view name, std::string_view value,
                          const std::string& target = "/state") {
    return Handle({.target = target, .fields = {{name, value}}}).status;
  };
  EXPECT_EQ(status("Origin", "http://localhost:8081"), 200);
  EXPECT_EQ(status("Origin", "HTTP://LOCALHOST:8081"), 200);
  EXPECT_EQ(status("Origin", "http://localhost"), 403);
  EXPECT_EQ(status("Origin", "http://localhost:8082"), 403);
  EXPECT_EQ(status("Origin", "https://evil.example"), 403);
  EXPECT_EQ(status("Origin", "null"), 403);
  EXPECT_EQ(status("Sec-Fetch-Site", "same-origin"), 200);
  EXPECT_EQ(status("Sec-Fetch-Site", "none"), 200);
  EXPECT_EQ(status("Sec-Fetch-Site", "cross-site"), 403);
  EXPECT_EQ(status("Sec-Fetch-Site", "same-site"), 403);
  // A proxy may pass on what a client sent to it.
  EXPECT_EQ(status("Origin", "https://shop.example", "/get"), 200);
}

TEST_F(HttpRouter, FindsTheRouteByPathAndMethod) {
  EXPECT_EQ(Handle({.target = "/get"}).body, "got");
  EXPECT_EQ(Handle({.target = "/get?x=/post"}).body, "got");
  EXPECT_EQ(Handle({.method = "HEAD", .target = "/get"}).body, "got");
}

TEST_F(HttpRouter, AnswersToGetAreNotKept) {
  EXPECT_EQ(http::Lines(Handle({.target = "/get"}).fields),
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
}

TEST_F(HttpRouter, Answers404WhereNothingIs) {
  for (const char* target : {"/nothing", "/get/", "/GET", "/ge", "//get", "/get%2f", "*"}) {
    const Response response = Handle({.target = target});
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_EQ(response.body,
              R"({"type":"about:blank","title":"Not Found","status":404,)"
              R"("detail":"this path does not exist","hint":"GET / lists all paths"})"
              "\n");
  }
}

TEST_F(HttpRouter, SaysWhyARouteIsTurnedOff) {
  router.TurnOff("/off", "this is turned off", "turn it on");
  for (const char* target : {"/off", "/off/", "/off/a?b"}) {
    const Response response = Handle({.method = "POST", .target = target});
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_THAT(response.body, HasSubstr(R"("detail":"this is turned off","hint":"turn it on")"));
  }
  EXPECT_THAT(Handle({.target = "/offer"}).body, HasSubstr("this path does not exist"));
  EXPECT_THAT(Handle({.target = "/"}).body, ::testing::Not(HasSubstr("/off")));
  EXPECT_TRUE(router.TakesAnyHost("/off/a")) << "a proxy passes on the host of its client";
  EXPECT_FALSE(router.TakesAnyHost("/offer"));
}

TEST_F(HttpRouter, Answers405WithTheMethodsThatAreAllowed) {
  const Response response = Handle({.method = "DELETE", .target = "/both"});
  EXPECT_EQ(response.status, 405);
  EXPECT_THAT(http::Lines(response.fields), HasSubstr("Allow: GET, HEAD, POST\r\n"));
  EXPECT_EQ(response.body,
            R"({"type":"about:blank","title":"Method Not Allowed","status":405,)"
            R"("detail":"this path does not take this method","hint":"it takes GET, HEAD, POST"})"
            "\n");
  EXPECT_THAT(http::Lines(Handle({.method = "GET", .target = "/post"}).fields),
              HasSubstr("Allow: POST\r\n"));
  EXPECT_EQ(Handle({.method = "OPTIONS", .target = "/get"}).status, 405);
  EXPECT_EQ(Handle({.method = "get", .target = "/get"}).status, 405);
  EXPECT_EQ(Handle({.method = "POST", .target = "/"}).status, 405);
}

TEST_F(HttpRouter, TakesBodiesAsJsonOnly) {
  EXPECT_EQ(
      Handle(
          {.method = "POST", .target = "/post", .fields = {{"content-type", "application/json"}}})
          .body,
      "posted");
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}) {
    const Response response =
        Handle({.method = "POST", .target = "/post", .fields = {{"Content-Type", type}}});
    EXPECT_EQ(response.status, 415) << type;
    EXPECT_EQ(
        response.body,
        R"({"type":"about:blank","title":"Unsupported Media Type","status":415,)"
        R"("detail":"this path does not take a body of this type","hint":"send Content-Type: application/json"})"
        "\n");
  }
}

TEST_F(HttpRouter, WithoutACredentialStateIsForItsOwnMachine) {
  EXPECT_EQ(Handle({.target = "/state"}).body, "secret");
  const Response response = Handle({.target = "/state", .loopback = false});
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(
      response.body,
      R"({"type":"about:blank","title":"Forbidden","status":403,)"
      R"("detail":"without a credential on the server, only its own machine may do this",)"
      R"("hint":"set a credential on the server and send it, or send the request from the server's machine"})"
      "\n");
}

class HttpRouterWithCredential : public HttpRouter {
 protected:
  HttpRouterWithCredential() : HttpRouter({.credential = "s3cret", .failures_per_minute = 1000}) {}
};

TEST_F(HttpRouterWithCredential, StateIsForWhoeverPresentsIt) {
  for (const bool loopback : {true, false}) {
    const Response response = Handle({.target = "/state", .loopback = loopback});
    EXPECT_EQ(response.status, 401);
    EXPECT_THAT(
        http::Lines(response.fields),
        HasSubstr("WWW-Authenticate: Bearer realm=\"headgate\", Basic realm=\"headgate\"\r\n"));
    EXPECT_EQ(response.body,
              R"({"type":"about:blank","title":"Unauthorized","status":401,)"
              R"("detail":"this request needs the server's credential",)"
              R"("hint":"send Authorization: Bearer CREDENTIAL, or Basic with it as the password"})"
              "\n");
  }
  const auto status_with = [&](std::string_view authorization) {
    return Handle({.target = "/state",
                   .fields = {{"Authorization", authorization}},
                   .loopback = false})
        .status;
  };
  EXPECT_EQ(status_with("Bearer s3cret"), 200);
  EXPECT_EQ(status_with("bearer   s3cret"), 200);
  EXPECT_EQ(status_with("Basic OnMzY3JldA=="), 200);      // :s3cret
  EXPECT_EQ(status_with("basic YWRtaW46czNjcmV0"), 200);  // admin:s3cret
  for (const char* wrong : {"Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret1", "Bearer S3CRET",
                            "s3cret", "Digest s3cret", "Basic", "Basic !!!", "Basic czNjcmV0",
                            "Basic czNjcmV0Og==", "Basic OnMzY3JldDE="}) {
    EXPECT_EQ(status_with(wrong), 401) << wrong;
  }
  EXPECT_EQ(Handle({.target = "/get", .loopback = false}).status, 200);
}

// Anybody may administer it, and check.
class HttpRouterForAnybody : public HttpRouter {
 protected:
  HttpRouterForAnybody() : HttpRouter({.credential = "s3cret", .users = Everybody()}) {
    router.Add({.methods = {"GET"},
                .path = "/check",
                .needs = access::Right::kCheck,
                .handle = Answer("checked")});
  }

  static std::shared_ptr<const access::UserTable> Everybody() {
    auto table = std::make_shared<access::UserTable>();
    table->anonymous = access::Rights::All();
    return table;
  }
};

TEST_F(HttpRouterForAnybody, ALoginThatIsPresentedIsVerified) {
  const auto status = [&](const std::string& target, std::string_view authorization) {
    return Handle({.target = target, .fields = {{"Authorization", authorization}}}).status;
  };
  EXPECT_EQ(Handle({.target = "/state"}).status, 200);
  EXPECT_EQ(status("/state", "Bearer s3cret"), 200);
  EXPECT_EQ(access.logins(access::Login::Result::kAccepted), 1u);
  EXPECT_EQ(status("/state", "Bearer guess"), 401);
  EXPECT_EQ(status("/state", "basic Omd1ZXNz"), 401);  // :guess
  EXPECT_EQ(access.logins(access::Login::Result::kWrong), 2u);
  EXPECT_EQ(status("/state", "Basic !!!"), 401);
  // This server does not know the scheme.
  EXPECT_EQ(status("/state", "Negotiate x"), 200);
  // It may be meant for the server behind a proxy.
  EXPECT_EQ(status("/check", "Bearer guess"), 200);
  EXPECT_EQ(access.logins(access::Login::Result::kWrong), 2u);
}

TEST_F(HttpRouterForAnybody, ARequestWithoutALoginIsNotOfTheUserBeforeIt) {
  std::unique_ptr<ConnectionState> connection;
  Ask ask{.target = "/state", .fields = {{"Authorization", "Bearer s3cret"}}};
  Request request = RequestOf(ask);
  request.connection_state = &connection;
  EXPECT_EQ(LoginOf(request), nullptr);
  Response response;
  router.Handle(request, response, kNow);
  ASSERT_NE(LoginOf(request), nullptr);
  EXPECT_EQ(LoginOf(request)->identity.user, "default");
  ask.fields.clear();
  request = RequestOf(ask);
  request.connection_state = &connection;
  router.Handle(request, response, kNow);
  EXPECT_EQ(LoginOf(request), nullptr);
}

TEST_F(HttpRouterWithCredential, ARequestThatWaitsForItsHandlerIsCheckedOnce) {
  int calls = 0;
  router.Add({.methods = {"GET"},
              .path = "/later",
              .needs = access::Right::kAdmin,
              .handle = [&](const Request&, Response& response, base::Instant) {
                response.later = ++calls == 1;
              }});
  Suspension suspension;
  const auto status_with = [&](std::string_view authorization, bool& later) {
    const Ask ask{.target = "/later", .fields = {{"Authorization", authorization}}};
    Request request = RequestOf(ask);
    request.suspension = &suspension;
    Response response;
    router.Handle(request, response, kNow);
    later = response.later;
    return response.status;
  };
  bool later = false;
  EXPECT_EQ(status_with("Bearer wrong", later), 401);
  EXPECT_FALSE(later);
  EXPECT_EQ(status_with("Bearer s3cret", later), 200);
  EXPECT_TRUE(later);
  // Whatever a check would say now.
  EXPECT_EQ(status_with("", later), 200);
  EXPECT_FALSE(later);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(status_with("", later), 401) << "the next request";
}

TEST_F(HttpRouter, ListsItsRoutesAtTheRoot) {
  const Response response = Handle({.target = "/"});
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(http::Lines(response.fields),
              HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_EQ(response.body,
            "Headgate\n\n"
            "GET  /get           gets\n"
            "POST /post          posts\n"
            "GET  /state         state\n"
            "GET  /both          both\n"
            "POST /both          both\n");
}

TEST_F(HttpRouter, RefusesBodiesThatAreEncodedAndSaysSo) {
  for (const char* encoding : {"gzip", "deflate, gzip", "br"}) {
    const Response response =
        Handle({.method = "POST",
                .target = "/post",
                .fields = {{"Content-Type", "application/json"}, {"Content-Encoding", encoding}}});
    EXPECT_EQ(response.status, 415) << encoding;
    EXPECT_THAT(
        response.body,
        ::testing::HasSubstr("\"hint\":\"send the body as it is, without Content-Encoding\""));
  }
  EXPECT_EQ(
      Handle({.method = "POST",
              .target = "/post",
              .fields = {{"Content-Type", "application/json"}, {"Content-Encoding", "Identity"}}})
          .status,
      200);
}

TEST_F(HttpRouter, APrefixTakesEverythingBelowItButNoMoreSpecificPath) {
  router.Add({.methods = {"GET"},
              .path = "/files/",
              .match = Route::Match::kPrefix,
              .handle = Answer("file")});
  router.Add({.methods = {"GET"},
              .path = "/files/deep/",
              .match = Route::Match::kPrefix,
              .handle = Answer("deep")});
  router.Add(
      {.methods = {"PUT"}, .path = "/files/one", .content_types = {}, .handle = Answer("one")});
  EXPECT_EQ(Handle({.target = "/files/"}).body, "file");
  EXPECT_EQ(Handle({.target = "/files/a/b?q"}).body, "file");
  EXPECT_EQ(Handle({.target = "/files/deep/a"}).body, "deep");
  EXPECT_EQ(Handle({.method = "PUT", .target = "/files/one"}).body, "one");
  EXPECT_EQ(Handle({.target = "/files"}).status, 404);
  const Response refused = Handle({.target = "/files/one"});
  EXPECT_EQ(refused.status, 405);
  EXPECT_THAT(http::Lines(refused.fields), HasSubstr("Allow: PUT\r\n"));
}

TEST_F(HttpRouter, ARouteMayTakeSeveralMethods) {
  router.Add({.methods = {"GET", "DELETE"}, .path = "/several", .handle = Answer("several")});
  for (const char* method : {"GET", "HEAD", "DELETE"}) {
    EXPECT_EQ(Handle({.method = method, .target = "/several"}).body, "several");
  }
  EXPECT_THAT(http::Lines(Handle({.method = "PUT", .target = "/several"}).fields),
              HasSubstr("Allow: GET, HEAD, DELETE\r\n"));
}

TEST_F(HttpRouter, ARouteSaysWhichBodiesItTakes) {
  router.Add({.methods = {"PUT"},
              .path = "/rules",
              .content_types = {"text/yaml", "application/yaml"},
              .handle = Answer("rules")});
  router.Add({.methods = {"PUT"}, .path = "/any", .content_types = {}, .handle = Answer("any")});
  EXPECT_EQ(
      Handle(
          {.method = "PUT", .target = "/rules", .fields = {{"Content-Type", "application/yaml"}}})
          .body,
      "rules");
  const Response refused =
      Handle({.method = "PUT", .target = "/rules", .fields = {{"Content-Type", "text/html"}}});
  EXPECT_EQ(refused.status, 415);
  EXPECT_THAT(refused.body, HasSubstr("send Content-Type: text/yaml or application/yaml"));
  EXPECT_EQ(Handle({.method = "PUT", .target = "/any"}).body, "any");
}

}  // namespace router_test
}  // namespace headgate::http::routing
