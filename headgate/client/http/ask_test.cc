// The blocking client against a server on this machine.
#include "headgate/client/http/ask.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <utility>

#include "headgate/client/http/test_http_server.h"
#include "headgate/net/listen.h"
#include "headgate/net/test_certificate.h"

namespace headgate::client::http {
namespace ask_test {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

ServerAccess AccessTo(const HttpRig& server) {
  return {.endpoint = *net::ParseEndpoint("127.0.0.1:" + std::to_string(server.port()))};
}

// Answers each client with the same bytes as soon as it says something, again and again if
// `endless`, and closes the connection.
class ByteServer {
 public:
  explicit ByteServer(std::string bytes, bool endless = false,
                      const std::string& address = "127.0.0.1:0")
      : bytes_(std::move(bytes)),
        endless_(endless),
        sockets_(*net::ListenOn(*net::ParseEndpoint(address), 1, 8)),
        thread_([this] { Run(); }) {}
  ~ByteServer() {
    ::shutdown(listening(), SHUT_RDWR);
    thread_.join();
  }

  const net::Endpoint& endpoint() const { return sockets_.bound; }
  absl::StatusOr<Answer> Ask(base::Duration timeout = 10s) const {
    return GetFrom({.endpoint = sockets_.bound}, "/", timeout);
  }

 private:
  int listening() const { return sockets_.by_loop[0][0].get(); }
  void Run() const {
    const int flags = ::fcntl(listening(), F_GETFL);
    ::fcntl(listening(), F_SETFL, flags & ~O_NONBLOCK);
    while (true) {
      const net::FileDescriptor client(::accept(listening(), nullptr, nullptr));
      if (!client) return;
      char some[4096];
      if (::recv(client.get(), some, sizeof some, 0) <= 0) continue;
      do {
        if (::send(client.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL) < 0) break;
      } while (endless_);
    }
  }

  const std::string bytes_;
  const bool endless_;
  const net::ListeningSockets sockets_;
  std::thread thread_;
};

TEST(Ask, SendsARequestAndReturnsItsAnswer) {
  HttpRig server([](const RigRequest& request) {
    return RigReply{
        .status = 412, .body = request.method + request.body, .fields = {"ETag: \"v1\""}};
  });
  ServerAccess access = AccessTo(server);
  access.credential = "ann:apple";
  const auto answer = Ask(access,
                          {.method = "PUT",
                           .target = "/v1/documents/..?dry_run=true",
                           .fields = {"If-Match: \"v0\""},
                           .body = "{}"},
                          10s);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 412);
  EXPECT_EQ(answer->body, "PUT{}");
  EXPECT_EQ(answer->etag, "\"v1\"");
  RigRequest seen = server.requests().back();
  EXPECT_EQ(seen.target, "/v1/documents/..?dry_run=true");
  EXPECT_EQ(seen.fields["if-match"], "\"v0\"");
  EXPECT_EQ(seen.fields["authorization"], "Bearer ann:apple");
  EXPECT_EQ(seen.fields["host"], "localhost");
  EXPECT_FALSE(seen.fields.contains("expect"));
  EXPECT_EQ(PostJson(access, "/", "[]", 10s)->body, "POST[]");
  EXPECT_EQ(server.requests().back().fields["content-type"], "application/json");
  EXPECT_EQ(GetFrom(access, "/", 10s)->body, "GET");
  EXPECT_EQ(Ask(access, {.method = "DELETE"}, 10s)->body, "DELETE");
  EXPECT_FALSE(server.requests().back().fields.contains("content-type"));
}

TEST(Ask, ReachesEachFormOfAnAddress) {
  const std::string path = ::testing::TempDir() + "ask_test.sock";
  const std::string bytes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
  for (const std::string& address : {std::string("127.0.0.1:0"), std::string("localhost:0"),
                                     std::string(":0"), "unix:" + path}) {
    const ByteServer server(bytes, false, address);
    const auto answer = server.Ask();
    ASSERT_TRUE(answer.ok()) << address << ": " << answer.status();
    EXPECT_EQ(answer->body, "{}");
  }
}

TEST(Ask, TakesABodyHoweverItsLengthIsStated) {
  for (const char* bytes : {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nhello",
                            "HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
                            "HTTP/1.0 429 Too Many Requests\r\n\r\nhello"}) {
    const auto answer = ByteServer(bytes).Ask();
    ASSERT_TRUE(answer.ok()) << bytes << answer.status();
    EXPECT_EQ(answer->status, 429);
    EXPECT_EQ(answer->body, "hello");
  }
}

TEST(Ask, TakesNothingElseForAnAnswer) {
  for (const char* bytes :
       {"", "HTTP/1.1 200 OK\r\n", "-ERR no\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n", "HTTP/1.\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"}) {
    const ByteServer server(bytes);
    const absl::Status status = server.Ask().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bytes << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::AnyOf(EndsWith("the answer is not HTTP"),
                                 EndsWith("the answer ends in the middle"),
                                 EndsWith("Connection reset by peer")));
  }
}

TEST(Ask, BoundsAnAnswer) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string body(kAnswerBytesMax, 'x');
  EXPECT_TRUE(ByteServer(head + "\r\n" + body).Ask().ok());
  EXPECT_THAT(std::string(ByteServer(head + "\r\n" + body + "x").Ask().status().message()),
              EndsWith("the answer is longer than 16777216 bytes"));
  const std::string field = "X: " + std::string(1000, 'x') + "\r\n";
  EXPECT_THAT(std::string(ByteServer(field, true).Ask().status().message()),
              EndsWith("the answer is not HTTP"));
  std::string long_head = head;
  for (int i = 0; i < 70; ++i) long_head += field;
  EXPECT_THAT(std::string(ByteServer(long_head + "\r\n").Ask().status().message()),
              EndsWith("the answer is not HTTP"));
}

TEST(Ask, AServerCannotHoldIt) {
  HttpRig silent([](const RigRequest&) { return RigReply{.is_silent = true}; });
  const absl::Status status = GetFrom(AccessTo(silent), "/", 50ms).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), EndsWith(": no answer in 50 ms; is it up?"));
  // Informational answers without end.
  const ByteServer talkative("HTTP/1.1 103 Early Hints\r\n\r\n", true);
  EXPECT_FALSE(talkative.Ask(100ms).ok());
}

TEST(Ask, IsUnavailableWithoutAServer) {
  const absl::Status status =
      GetFrom({.endpoint = *net::ParseEndpoint("127.0.0.1:1")}, "/", 10s).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "cannot reach 127.0.0.1:1: Connection refused");
  EXPECT_EQ(
      GetFrom({.endpoint = *net::ParseEndpoint("unix:/no/such")}, "/", 10s).status().message(),
      "cannot reach unix:/no/such: No such file or directory");
}

TEST(Ask, ChecksTheCertificateOfTheServer) {
  const net::TestCertificate certificate, other, named("DNS:service.example");
  const auto answer = [](const RigRequest&) { return RigReply{.body = "{}"}; };
  HttpRig server(answer, certificate.certificate_file(), certificate.key_file());
  ServerAccess access = AccessTo(server);
  access.tls = true;
  access.ca_file = certificate.certificate_file();
  EXPECT_EQ(GetFrom(access, "/", 10s)->body, "{}");
  access.tls_name = "localhost";
  EXPECT_EQ(GetFrom(access, "/", 10s)->body, "{}");
  const auto refused = [&](const ServerAccess& to, const char* why) {
    const absl::Status status = GetFrom(to, "/", 10s).status();
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  access.tls_name = "other.example";
  refused(access, "certificate verify failed (hostname mismatch)");
  access.ca_file = other.certificate_file();
  refused(access, "certificate verify failed (");

  HttpRig elsewhere(answer, named.certificate_file(), named.key_file());
  access = AccessTo(elsewhere);
  access.tls = true;
  access.ca_file = named.certificate_file();
  refused(access, "certificate verify failed (IP address mismatch)");
  access.tls_name = "service.example";
  EXPECT_EQ(GetFrom(access, "/", 10s)->body, "{}");
}

TEST(Ask, NamesAServerWithoutTls) {
  HttpRig silent([](const RigRequest&) { return RigReply{.is_silent = true}; });
  ServerAccess access = AccessTo(silent);
  access.tls = true;
  const absl::Status status = GetFrom(access, "/", 50ms).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), EndsWith("does it speak TLS on this port?"));

  const auto error = [](const ByteServer& server) {
    return std::string(
        GetFrom({.endpoint = server.endpoint(), .tls = true}, "/", 10s).status().message());
  };
  EXPECT_THAT(error(ByteServer("-ERR no\r\n")), EndsWith(": TLS: wrong version number"));
  EXPECT_THAT(error(ByteServer("")),
              ::testing::ContainsRegex(": TLS: (the other end closed|Connection reset)"));
}

}  // namespace ask_test
}  // namespace headgate::client::http
