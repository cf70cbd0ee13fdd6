// The malformed requests that HTTP sessions refuse, each sent whole and split at every byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "headgate/http/dialogue.h"

namespace headgate::http {
namespace refusals_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct BadRequest {
  std::string name;
  std::string input;
  int status;
  std::string detail;
};

class Refused : public ::testing::TestWithParam<BadRequest> {};

const Options kSmallBounds{.bounds = {.line_bytes_max = 200,
                                      .head_bytes_max = 400,
                                      .chunk_extra_bytes_max = 400,
                                      .fields_max = 5,
                                      .body_bytes_max = 10},
                           .hosts = {}};

TEST_P(Refused, WithItsStatusAndReasonAndTheConnectionCloses) {
  const BadRequest& bad = GetParam();
  Dialogue d(kSmallBounds);
  const std::string answer = d.Say(bad.input);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(bad.status) + " "));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/problem+json\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("\"detail\":\"" + bad.detail + "\""));
  EXPECT_THAT(d.handler.asked, IsEmpty());
  EXPECT_TRUE(d.progress.close);
  EXPECT_TRUE(d.progress.protocol_error);

  EXPECT_TRUE(d.rest.empty());
}

// The answer is exactly the same for every split into two pieces, and byte by byte.
TEST_P(Refused, WhereverTheRequestIsCut) {
  const BadRequest& bad = GetParam();
  Dialogue whole(kSmallBounds);
  const std::string answer = whole.Say(bad.input);
  const std::string_view input = bad.input;
  for (size_t cut = 0; cut <= input.size(); ++cut) {
    Dialogue d(kSmallBounds);
    std::string output = d.Say(input.substr(0, cut));
    if (!d.progress.close) output += d.Say(input.substr(cut));
    ASSERT_EQ(output, answer) << "cut at " << cut;
    ASSERT_TRUE(d.progress.close) << "cut at " << cut;
    ASSERT_THAT(d.handler.asked, IsEmpty()) << "cut at " << cut;
  }
  Dialogue bytes(kSmallBounds);
  std::string output;
  for (size_t i = 0; i < input.size() && !bytes.progress.close; ++i)
    output += bytes.Say(input.substr(i, 1));
  EXPECT_EQ(output, answer);
  EXPECT_TRUE(bytes.progress.close);
  EXPECT_THAT(bytes.handler.asked, IsEmpty());
}

constexpr char kTwice[] = "the length of the body is stated twice, or is not a number";
constexpr char kNoNumber[] = "Content-Length is not a number";
constexpr char kField[] = "a field of the head is malformed";
constexpr char kLine[] = "the request line is not METHOD TARGET HTTP/1.1";
constexpr char kLineEnd[] = "a line of the head does not end with CR LF";
constexpr char kContent[] = "GET and HEAD requests have no content";
constexpr char kAlias[] = "a field looks like one that states the length of the body";
constexpr char kChunk[] = "the chunked body is malformed";
constexpr char kChunkLine[] = "a line of the chunked body does not end with CR LF";
constexpr char kExtensions[] = "the chunk extensions are too long";
constexpr char kTrailer[] = "a field of the trailer may only be in the head";
constexpr char kTrailerField[] = "a field of the trailer is malformed";
constexpr char kName[] = "this server does not know the name in Host";

const BadRequest kBadRequests[] = {
    // Request lines.
    {"garbage", "\x01\x02\x03\r\n\r\n", 400, "the method is not a token"},
    {"no_target", "GET\r\nHost: localhost\r\n\r\n", 400, "the method is not a token"},
    {"no_version", "GET /\r\nHost: localhost\r\n\r\n", 400,
     "the request target is empty or has a byte that must be percent-encoded"},
    {"empty_target", "GET  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is empty or has a byte that must be percent-encoded"},
    {"two_spaces", "GET /  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, kLine},
    {"space_in_target", "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, kLine},
    {"control_in_target", "GET /a\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is empty or has a byte that must be percent-encoded"},
    {"http_2", "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505,
     "this server speaks HTTP/1.0 and HTTP/1.1"},
    {"http_0_9", "GET / HTTP/0.9\r\nHost: localhost\r\n\r\n", 505,
     "this server speaks HTTP/1.0 and HTTP/1.1"},
    {"http_1_2", "GET / HTTP/1.2\r\nHost: localhost\r\n\r\n", 505,
     "this server speaks HTTP/1.0 and HTTP/1.1"},
    {"lower_case_http", "GET / http/1.1\r\nHost: localhost\r\n\r\n", 400, kLine},
    {"long_version", "GET / HTTP/1.11\r\nHost: localhost\r\n\r\n", 400, kLine},
    {"authority_target", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is not a path"},
    {"relative_target", "GET x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is not a path"},
    {"absolute_without_host", "GET http:/// HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is not a path"},
    {"absolute_with_fragment", "GET http://localhost#a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is not a path"},
    {"absolute_with_user", "GET http://u@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     "the request target is not a path"},
    {"line_feed_only", "GET / HTTP/1.1\nHost: localhost\n\r\n\r\n", 400, kLineEnd},
    {"line_feed_only_and_no_end", "GET / HTTP/1.1\nHost: localhost\n\n", 400, kLineEnd},
    {"line_feed_first", "\nGET / HTTP/1.1\r\n", 400, kLineEnd},
    {"line_feed_behind_the_request_line", "GET / HTTP/1.1\n", 400, kLineEnd},
    {"carriage_return_only", "GET / HTTP/1.1\rHost: localhost\r\r", 400, kLineEnd},
    {"carriage_return_first", "\rGET / HTTP/1.1\r\n\r\n", 400, kLineEnd},
    {"long_line", "GET /" + std::string(200, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414,
     "the request line is too long"},
    {"endless_line", "GET /" + std::string(200, 'a'), 414, "the request line is too long"},
    {"very_long_line", "GET /" + std::string(4000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
     414, "the request line is too long"},
    {"long_line_with_line_feed", "GET /" + std::string(300, 'a') + "\n", 414,
     "the request line is too long"},
    // Fields.
    {"folded", Get("Host: localhost\r\nA: b\r\n c\r\n"), 400,
     "a field is folded over several lines"},
    {"folded_host", "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", 400,
     "a field is folded over several lines"},
    {"space_before_colon", Get("Host: localhost\r\nA : b\r\n"), 400, kField},
    {"space_in_name", Get("Host: localhost\r\nA B: b\r\n"), 400, kField},
    {"empty_name", Get("Host: localhost\r\n: b\r\n"), 400, kField},
    {"no_colon", Get("Host: localhost\r\nAAA\r\n"), 400, kField},
    {"nul_in_value", Get(std::string("Host: localhost\r\nA: b\0c\r\n", 25)), 400, kField},
    {"bare_cr_in_value", Get("Host: localhost\r\nA: b\rc\r\n"), 400, kLineEnd},
    {"bare_lf_in_value", Get("Host: localhost\r\nA: b\nc: d\r\n"), 400, kLineEnd},
    {"bare_lf_in_a_long_head",
     "GET / HTTP/1.1\r\nA: " + std::string(100, 'a') + "\n" + std::string(5000, 'a'), 400,
     kLineEnd},
    {"bad_connection", Get("Host: localhost\r\nConnection: @\r\n"), 400, kField},
    {"too_many", Get("Host: localhost\r\n1: a\r\n2: a\r\n3: a\r\n4: a\r\n5: a\r\n"), 431,
     "too many fields"},
    {"too_long", Get("Host: localhost\r\nA: " + std::string(400, 'a') + "\r\n"), 431,
     "the head of the request is too long"},
    {"endless", "GET / HTTP/1.1\r\nA: " + std::string(400, 'a'), 431,
     "the head of the request is too long"},
    {"far_too_long", Get("Host: localhost\r\nA: " + std::string(4000, 'a') + "\r\n"), 431,
     "the head of the request is too long"},
    {"far_too_long_and_folded",
     Get("Host: localhost\r\nA: " + std::string(4000, 'a') + "\r\n b\r\n"), 431,
     "the head of the request is too long"},
    {"folded_in_a_long_head",
     Get("Host: localhost\r\nA: b\r\n c\r\nA: " + std::string(4000, 'a') + "\r\n"), 400,
     "a field is folded over several lines"},
    // Host.
    {"no_host", Get(""), 400, "no Host field"},
    {"two_hosts", Get("Host: localhost\r\nHost: localhost\r\n"), 400, "several Host fields"},
    {"host_is_no_host", Get("Host: a/b\r\n"), 400, "the Host field is not a host"},
    {"host_with_user", Get("Host: a@localhost\r\n"), 400, "the Host field is not a host"},
    {"empty_host", Get("Host:\r\n"), 421, kName},
    {"foreign_host", Get("Host: evil.example:8080\r\n"), 421, kName},
    {"foreign_target", "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421, kName},
    {"foreign_host_in_http_1_0", "GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421, kName},
    // The length of the body.
    {"length_and_chunked", Post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400,
     kTwice},
    {"chunked_and_length", Post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400,
     kTwice},
    {"two_lengths", Post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400,
     "the length of the body is stated twice"},
    {"two_different_lengths", Post("Content-Length: 5\r\nContent-Length: 6\r\n"), 400, kTwice},
    {"list_of_lengths", Post("Content-Length: 5, 5\r\n"), 400, kNoNumber},
    {"empty_length", Post("Content-Length:\r\n"), 400, kTwice},
    {"negative_length", Post("Content-Length: -5\r\n"), 400, kTwice},
    {"signed_length", Post("Content-Length: +5\r\n"), 400, kTwice},
    {"hexadecimal_length", Post("Content-Length: 0x5\r\n"), 400, kTwice},
    {"fraction_length", Post("Content-Length: 5.0\r\n"), 400, kTwice},
    {"huge_length", Post("Content-Length: 18446744073709551616\r\n"), 400, kTwice},
    {"two_codings", Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400,
     kTwice},
    {"unknown_coding", Post("Transfer-Encoding: gzip\r\n"), 501,
     "chunked is the only transfer coding that this server takes"},
    {"coding_before_chunked", Post("Transfer-Encoding: gzip, chunked\r\n"), 501,
     "chunked is the only transfer coding that this server takes"},
    {"coding_behind_chunked", Post("Transfer-Encoding: chunked, identity\r\n"), 501,
     "chunked is the only transfer coding that this server takes"},
    {"coding_like_chunked", Post("Transfer-Encoding: xchunked\r\n"), 501,
     "chunked is the only transfer coding that this server takes"},
    {"coding_in_http_1_0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
     "HTTP/1.0 has no Transfer-Encoding"},
    {"get_with_content", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 400,
     kContent},
    {"get_with_chunks",
     "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
     kContent},
    {"length_with_underscore", Post("Content-Length: 5\r\nContent_Length: 7\r\n"), 400, kAlias},
    {"length_with_underscore_alone", Get("Host: localhost\r\ncontent_length: 5\r\n"), 400, kAlias},
    {"coding_with_underscore", Post("Transfer_Encoding: chunked\r\n"), 400, kAlias},
    {"too_large", Post("Content-Length: 11\r\n"), 413, "the body is too large"},
    {"too_large_though_it_waits", Post("Content-Length: 11\r\nExpect: 100-continue\r\n"), 413,
     "the body is too large"},
    {"unknown_expectation", Post("Content-Length: 5\r\nExpect: more\r\n"), 417,
     "100-continue is the only expectation that this server supports"},
    // Chunks.
    {"chunk_without_size", Post("Transfer-Encoding: chunked\r\n", "\r\n\r\n0\r\n\r\n"), 400,
     kChunk},
    {"chunk_size_is_no_number", Post("Transfer-Encoding: chunked\r\n", "xyz\r\nabc\r\n0\r\n\r\n"),
     400, kChunk},
    {"chunk_size_is_negative", Post("Transfer-Encoding: chunked\r\n", "-3\r\nabc\r\n0\r\n\r\n"),
     400, kChunk},
    {"chunk_size_is_prefixed", Post("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"),
     400, kChunk},
    {"chunk_size_overflows",
     Post("Transfer-Encoding: chunked\r\n", "10000000000000003\r\nabc\r\n0\r\n\r\n"), 400, kChunk},
    {"chunk_is_longer_than_its_size",
     Post("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n0\r\n\r\n"), 400, kChunk},
    {"chunk_size_has_17_digits",
     Post("Transfer-Encoding: chunked\r\n", "00000000000000003\r\nabc\r\n0\r\n\r\n"), 400, kChunk},
    {"chunk_size_and_space", Post("Transfer-Encoding: chunked\r\n", "3 \r\nabc\r\n0\r\n\r\n"), 400,
     kChunk},
    {"chunk_line_ends_with_line_feed",
     Post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), 400, kChunkLine},
    {"chunk_line_ends_with_carriage_return",
     Post("Transfer-Encoding: chunked\r\n", "3\rabc\r\n0\r\n\r\n"), 400, kChunkLine},
    {"chunk_extension_with_line_feed",
     Post("Transfer-Encoding: chunked\r\n", "3;a\nb\r\nabc\r\n0\r\n\r\n"), 400, kChunkLine},
    {"chunk_extension_with_nul",
     Post("Transfer-Encoding: chunked\r\n", std::string("3;\0\r\nabc\r\n0\r\n\r\n", 15)), 400,
     kChunk},
    {"chunk_data_ends_with_line_feed",
     Post("Transfer-Encoding: chunked\r\n", "3\r\nabc\n0\r\n\r\n"), 400, kChunkLine},
    {"last_chunk_ends_with_line_feed",
     Post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\n"), 400, kChunkLine},
    {"chunk_too_large", Post("Transfer-Encoding: chunked\r\n", "b\r\n01234567890\r\n0\r\n\r\n"),
     413, "the body is too large"},
    {"chunks_too_large",
     Post("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n5\r\n01234\r\n0\r\n\r\n"), 413,
     "the body is too large"},
    {"chunk_size_too_large", Post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n"), 413,
     "the body is too large"},
    {"extension_endless", Post("Transfer-Encoding: chunked\r\n", "3;" + std::string(500, 'a')), 431,
     kExtensions},
    {"extension_too_long",
     Post("Transfer-Encoding: chunked\r\n", "3;" + std::string(500, 'a') + "\r\nabc\r\n0\r\n\r\n"),
     431, kExtensions},
    {"extension_far_too_long",
     Post("Transfer-Encoding: chunked\r\n", "3;" + std::string(4000, 'a') + "\r\nabc\r\n0\r\n\r\n"),
     431, kExtensions},
    {"extensions_too_long_in_all",
     Post("Transfer-Encoding: chunked\r\n", "1;" + std::string(250, 'a') + "\r\na\r\n1;" +
                                                std::string(250, 'a') + "\r\nb\r\n0\r\n\r\n"),
     431, kExtensions},
    {"trailer_endless", Post("Transfer-Encoding: chunked\r\n", "0\r\nA: " + std::string(500, 'a')),
     431, "the trailer is too long"},
    {"trailer_too_long",
     Post("Transfer-Encoding: chunked\r\n", "0\r\nA: " + std::string(500, 'a') + "\r\n\r\n"), 431,
     "the trailer is too long"},
    {"trailer_far_too_long",
     Post("Transfer-Encoding: chunked\r\n", "0\r\nA: " + std::string(4000, 'a') + "\r\n\r\n"), 431,
     "the trailer is too long"},
    {"trailer_too_long_in_all",
     Post("Transfer-Encoding: chunked\r\n",
          "0\r\nA: " + std::string(250, 'a') + "\r\nB: " + std::string(250, 'a') + "\r\n\r\n"),
     431, "the trailer is too long"},
    {"trailer_with_too_many_fields",
     Post("Transfer-Encoding: chunked\r\n",
          "0\r\n1: a\r\n2: a\r\n3: a\r\n4: a\r\n5: a\r\n6: a\r\n\r\n"),
     431, "too many fields"},
    {"trailer_with_length",
     Post("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 5\r\n\r\n"), 400, kTrailer},
    {"trailer_with_coding",
     Post("Transfer-Encoding: chunked\r\n", "0\r\ntransfer_encoding: chunked\r\n\r\n"), 400,
     kTrailer},
    {"trailer_with_host", Post("Transfer-Encoding: chunked\r\n", "0\r\nHost: evil.example\r\n\r\n"),
     400, kTrailer},
    {"trailer_folded", Post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n c\r\n\r\n"), 400,
     "a field is folded over several lines"},
    {"trailer_begins_with_space", Post("Transfer-Encoding: chunked\r\n", "0\r\n A: b\r\n\r\n"), 400,
     "a field is folded over several lines"},
    {"trailer_without_colon", Post("Transfer-Encoding: chunked\r\n", "0\r\nA\r\n\r\n"), 400,
     kTrailerField},
    {"trailer_without_name", Post("Transfer-Encoding: chunked\r\n", "0\r\n: b\r\n\r\n"), 400,
     kTrailerField},
    {"trailer_with_space_in_name", Post("Transfer-Encoding: chunked\r\n", "0\r\nA : b\r\n\r\n"),
     400, kTrailerField},
    {"trailer_with_nul",
     Post("Transfer-Encoding: chunked\r\n", std::string("0\r\nA: \0\r\n\r\n", 11)), 400,
     kTrailerField},
    {"trailer_with_line_feed", Post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\nB: c\r\n\r\n"),
     400, kChunkLine},
};

INSTANTIATE_TEST_SUITE_P(Session, Refused, ::testing::ValuesIn(kBadRequests),
                         [](const auto& bad) { return bad.param.name; });

TEST(HttpSession, ARefusalIsWholeAndHasAHint) {
  Dialogue d;
  const std::string body =
      R"({"type":"about:blank","title":"Misdirected Request","status":421,)"
      R"("detail":"this server does not know the name in Host",)"
      R"("hint":"use an address or localhost, or start the server with --known-host NAME"})"
      "\n";
  EXPECT_EQ(d.Say(Get("Host: evil.example\r\n")),
            "HTTP/1.1 421 Misdirected Request\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Length: " +
                std::to_string(body.size()) +
                "\r\n"
                "Connection: close\r\n"
                "Content-Type: application/problem+json\r\n"
                "\r\n" +
                body);
}

TEST(HttpSession, ARefusedHeadHasNoContent) {
  Dialogue d;
  EXPECT_THAT(d.Say("HEAD / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), EndsWith("\r\n\r\n"));
}

// The refusal of HEAD has no content, so it does not fit into the table.
TEST(HttpSession, RefusesHeadWithContent) {
  for (const std::string_view length : {"Content-Length: 5", "Transfer-Encoding: chunked"}) {
    Dialogue d;
    const std::string answer =
        d.Say("HEAD / HTTP/1.1\r\nHost: localhost\r\n" + std::string(length) + "\r\n\r\nhello");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
    EXPECT_TRUE(d.progress.close);
    EXPECT_THAT(d.handler.asked, IsEmpty());
  }
}

}  // namespace refusals_test
}  // namespace headgate::http
