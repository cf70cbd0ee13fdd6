// A file of the binary as an ordinary route: its type, its version, its compressed form, and the
// policy of its content.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/handler_dialogue.h"
#include "headgate/http/routing/router.h"

namespace headgate::http::http1 {
namespace handled_file_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kPage = "<!doctype html><p>hello";
constexpr std::string_view kCompressed =
    "\x1f\x8b"
    "compressed";

void Serve(const Request& request, Response& response, base::Instant /*now*/) {
  response.AddField("ETag", "\"1\"");
  response.AddField("Vary", "Accept-Encoding");
  if (request.Field("If-None-Match") == "\"1\"") {
    response.status = 304;
    return;
  }
  response.AddField("Content-Type", "text/html; charset=utf-8");
  response.AddField("Content-Security-Policy", "default-src 'self'");
  const bool compressed = request.Field("Accept-Encoding").find("gzip") != std::string_view::npos;
  if (compressed) response.AddField("Content-Encoding", "gzip");
  response.stream = std::make_unique<FixedBody>(compressed ? kCompressed : kPage);
}

struct FileDialogue {
  FileDialogue() { router.Add({.methods = {"GET"}, .path = "/ui", .handle = Serve}); }
  std::string Ask(std::string_view method, std::string_view fields) {
    std::string output;
    const std::string request =
        std::string(method) + " /ui HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n";
    parts.session.OnBytes(request, output, kNow);
    return output;
  }
  access::Access access;
  routing::Router router{"test", access};
  HandlerSession parts{router, {}, {}};
};

TEST(HandledFile, HasItsTypeItsVersionAndItsPolicy) {
  FileDialogue file;
  EXPECT_THAT(file.Ask("GET", ""),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nETag: \"1\"\r\n"),
                    HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"),
                    HasSubstr("\r\nContent-Security-Policy: default-src 'self'\r\n"),
                    HasSubstr("\r\nContent-Length: 23\r\n"), EndsWith(std::string(kPage))));
}

TEST(HandledFile, IsCompressedForClientsThatAskForThat) {
  FileDialogue file;
  EXPECT_THAT(
      file.Ask("GET", "Accept-Encoding: br, gzip\r\n"),
      AllOf(HasSubstr("\r\nContent-Encoding: gzip\r\n"), EndsWith(std::string(kCompressed))));
}

TEST(HandledFile, IsNotSentAgainToAClientThatHasIt) {
  FileDialogue file;
  EXPECT_THAT(file.Ask("GET", "If-None-Match: \"1\"\r\n"),
              AllOf(StartsWith("HTTP/1.1 304 Not Modified\r\n"), HasSubstr("\r\nETag: \"1\"\r\n"),
                    Not(HasSubstr("Content-Length")), EndsWith("\r\n\r\n")));
}

TEST(HandledFile, HeadHasItsLengthOnly) {
  FileDialogue file;
  EXPECT_THAT(file.Ask("HEAD", ""),
              AllOf(HasSubstr("\r\nContent-Length: 23\r\n"), EndsWith("\r\n\r\n")));
}

}  // namespace handled_file_test
}  // namespace headgate::http::http1
