// Responses byte by byte: how each is understood, or why it is refused. Every case is received
// whole, split in two at every byte, and in single bytes, with the same result; then the server
// closes the connection. The expectations come from RFC 9110 and RFC 9112.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/client_dialogue.h"

namespace headgate::http::http1 {
namespace response_framing_test {

struct ResponseCase {
  std::string name;
  std::string request;  // the method, or "UPGRADE"
  std::string input;
  // TestResponse::Summary. "&" at the end: the connection could be used again. Then the detail of a
  // failure.
  std::string expected;
};

constexpr Bounds kSmallBounds{.line_bytes_max = 100,
                              .head_bytes_max = 300,
                              .chunk_extra_bytes_max = 60,
                              .fields_max = 5,
                              .body_bytes_max = 1000};

class Receiving {
 public:
  explicit Receiving(const std::string& request) {
    RequestHead head = ClientDialogue::Get();
    head.method = request == "UPGRADE" ? "GET" : request;
    if (request == "UPGRADE") head.protocol = "websocket";
    session_.Begin(head, response_, kThen).SendEnd({});
    session_.output().clear();
  }
  void Take(std::string_view piece) { session_.OnBytes(piece, kThen); }
  std::string Result() {
    const bool usable = session_.free_places() > 0;
    EXPECT_EQ(usable, !session_.finished() && session_.open_exchanges() == 0);
    session_.OnInputEnd(kThen);
    EXPECT_TRUE(session_.finished());
    return response_.Summary() + (usable ? "&" : "") +
           (response_.failure ? ": " + response_.detail : "");
  }

 private:
  static constexpr base::Instant kThen = base::Instant::FromNanos(1'000'000'000);

  TestResponse response_;
  ClientSession session_{kSmallBounds};
};

class ResponseFraming : public ::testing::TestWithParam<ResponseCase> {};

TEST_P(ResponseFraming, IsTheSameWhereverItIsCut) {
  const ResponseCase& c = GetParam();
  const std::string_view input = c.input;
  for (size_t cut = 0; cut < input.size(); ++cut) {
    Receiving receiving(c.request);
    receiving.Take(input.substr(0, cut));
    receiving.Take(input.substr(cut));
    ASSERT_EQ(receiving.Result(), c.expected) << "cut at " << cut;
  }
  Receiving bytes(c.request);
  for (size_t i = 0; i < input.size(); ++i) bytes.Take(input.substr(i, 1));
  EXPECT_EQ(bytes.Result(), c.expected);
}

constexpr char kLine[] = " invalid: the status line is not HTTP/1.1 STATUS REASON";
constexpr char kField[] = " invalid: a field of the head is malformed";
constexpr char kFolded[] = " invalid: a field is folded over several lines";
constexpr char kLineEnd[] = " invalid: a line of the head does not end with CR LF";
constexpr char kTwice[] = " invalid: the length of the body is stated twice";
constexpr char kNoNumber[] = " invalid: Content-Length is not a number";
constexpr char kCoding[] = " invalid: chunked is the only transfer coding";
constexpr char kNoContent[] = " invalid: a response without content states the length of a body";
constexpr char kInterim[] = " invalid: an informational response states the length of a body";
constexpr char kSwitch[] = " invalid: the server switches to a protocol that nobody asked for";
constexpr char kChunk[] = "200  truncated: the chunked body is malformed";
constexpr char kChunkLine[] = "200  truncated: a line of the chunked body does not end with CR LF";
constexpr char kTrailer[] = "200  truncated: a field of the trailer may only be in the head";
constexpr char kCut[] = " truncated: the server closed the connection";

std::string Ok(const std::string& fields, const std::string& body = "") {
  return "HTTP/1.1 200 OK\r\n" + fields + "\r\n" + body;
}
std::string Chunked(const std::string& body) { return Ok("Transfer-Encoding: chunked\r\n", body); }
std::string Line(const std::string& line) { return line + "\r\nContent-Length: 0\r\n\r\n"; }

const ResponseCase kStatusLines[] = {
    {"line", "GET", Line("HTTP/1.1 200 OK"), "200 .&"},
    {"line_with_empty_reason", "GET", Line("HTTP/1.1 200 "), "200 .&"},
    {"line_with_long_reason", "GET", Line("HTTP/1.1 404 Not\tHere \xC3\xA9"), "404 .&"},
    {"line_of_http_1_0", "GET", Line("HTTP/1.0 200 OK"), "200 ."},
    {"line_of_http_1_0_kept", "GET",
     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
     "Content-Length: 0\r\n\r\n",
     "200 .&"},
    {"status_999", "GET", Line("HTTP/1.1 999 Odd"), "999 .&"},
    {"line_without_reason_and_space", "GET", Line("HTTP/1.1 200"), kLine},
    {"status_of_two_digits", "GET", Line("HTTP/1.1 20 OK"), kLine},
    {"status_of_four_digits", "GET", Line("HTTP/1.1 2000 OK"), kLine},
    {"status_099", "GET", Line("HTTP/1.1 099 OK"), kLine},
    {"status_negative", "GET", Line("HTTP/1.1 -20 OK"), kLine},
    {"status_with_letter", "GET", Line("HTTP/1.1 2O0 OK"), kLine},
    {"two_spaces", "GET", Line("HTTP/1.1  200 OK"), kLine},
    {"tab_behind_version", "GET", Line("HTTP/1.1\t200 OK"), kLine},
    {"version_1_2", "GET", Line("HTTP/1.2 200 OK"), kLine},
    {"version_2_0", "GET", Line("HTTP/2.0 200 OK"), kLine},
    {"version_0_9", "GET", "<html>\r\n\r\n", kLine},
    {"version_lower_case", "GET", Line("http/1.1 200 OK"), kLine},
    {"control_in_reason", "GET", Line("HTTP/1.1 200 O\x01K"), kLine},
    {"empty_line_first", "GET", "\r\n" + Line("HTTP/1.1 200 OK"), kLine},
    {"space_first", "GET", " " + Line("HTTP/1.1 200 OK"), kLine},
    {"line_ends_with_lf", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", kLineEnd},
    {"line_ends_with_cr", "GET", "HTTP/1.1 200 OK\rContent-Length: 0\r\n\r\n", kLineEnd},
    {"line_too_long", "GET", Line("HTTP/1.1 200 " + std::string(100, 'a')),
     " invalid: the status line is too long"},
    {"a_request", "GET", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", kLine},
    {"nothing_but_a_line", "GET", "HTTP/1.1 200 OK\r\n", kCut},
};

const ResponseCase kFields[] = {
    {"fields_of_the_connection", "GET",
     Ok("Connection: X, keep-alive\r\nX: 1\r\nKeep-Alive: 5\r\nContent-Length: 0\r\n"), "200 .&"},
    {"field_with_high_bytes", "GET", Ok("A: \xC3\xA9\xFF\r\nContent-Length: 0\r\n"), "200 .&"},
    {"folded", "GET", Ok("A: b\r\n c\r\n"), kFolded},
    {"space_before_colon", "GET", Ok("Content-Length : 0\r\n"), kField},
    {"space_in_name", "GET", Ok("A B: c\r\n"), kField},
    {"name_empty", "GET", Ok(": b\r\n"), kField},
    {"no_colon", "GET", Ok("AAA\r\n"), kField},
    {"nul_in_value", "GET", Ok(std::string("A: b\0c\r\n", 8)), kField},
    {"control_in_value", "GET", Ok("A: b\x1b[\r\n"), kField},
    {"bare_cr_in_value", "GET", Ok("A: b\rSet-Cookie: c\r\n"), kLineEnd},
    {"bare_lf_in_value", "GET", Ok("A: b\nSet-Cookie: c\r\n"), kLineEnd},
    {"head_ends_with_lf", "GET", "HTTP/1.1 200 OK\r\nA: b\r\n\n", kLineEnd},
    {"too_many_fields", "GET", Ok("1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n"),
     " invalid: too many fields"},
    {"head_too_long", "GET", Ok("A: " + std::string(300, 'a') + "\r\n"),
     " invalid: the head of the response is too long"},
    {"connection_names_length", "GET", Ok("Connection: Content-Length\r\nContent-Length: 0\r\n"),
     " invalid: Connection names a field that is not its to remove"},
    {"connection_names_cookie", "GET", Ok("Connection: Set-Cookie\r\nContent-Length: 0\r\n"),
     " invalid: Connection names a field that is not its to remove"},
};

const ResponseCase kLengths[] = {
    {"length", "GET", Ok("Content-Length: 5\r\n", "hello"), "200 hello.&"},
    {"length_and_close", "GET", Ok("Content-Length: 5\r\nConnection: close\r\n", "hello"),
     "200 hello."},
    {"length_and_more", "GET", Ok("Content-Length: 5\r\n", "hello!"), "200 hello."},
    {"length_and_another_response", "GET", Ok("Content-Length: 5\r\n", "hello") + Ok(""),
     "200 hello."},
    {"length_and_less", "GET", Ok("Content-Length: 5\r\n", "hell"),
     "200 hell truncated: the server closed the connection"},
    {"length_none", "GET", Ok("", "hello"), "200 hello."},
    {"length_none_of_http_1_0", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
     "200 hello."},
    {"length_none_and_empty", "GET", Ok(""), "200 ."},
    {"length_and_coding", "GET", Ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), kTwice},
    {"coding_and_length", "GET", Ok("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), kTwice},
    {"length_twice", "GET", Ok("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), kTwice},
    {"length_twice_different", "GET", Ok("Content-Length: 5\r\nContent-Length: 6\r\n"), kTwice},
    {"length_list", "GET", Ok("Content-Length: 5, 5\r\n"), kNoNumber},
    {"length_empty", "GET", Ok("Content-Length:\r\n"), kNoNumber},
    {"length_negative", "GET", Ok("Content-Length: -5\r\n"), kNoNumber},
    {"length_signed", "GET", Ok("Content-Length: +5\r\n"), kNoNumber},
    {"length_with_leading_zero", "GET", Ok("Content-Length: 05\r\n"), kNoNumber},
    {"length_beyond_64_bits", "GET", Ok("Content-Length: 18446744073709551621\r\n"),
     " invalid: the body is too large"},
    {"coding_twice", "GET", Ok("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
     kTwice},
    {"coding_gzip", "GET", Ok("Transfer-Encoding: gzip\r\n", "x"), kCoding},
    {"coding_identity", "GET", Ok("Transfer-Encoding: identity\r\n", "x"), kCoding},
    {"coding_empty", "GET", Ok("Transfer-Encoding:\r\n", "x"), kCoding},
    {"coding_gzip_chunked", "GET", Ok("Transfer-Encoding: gzip, chunked\r\n"), kCoding},
    {"coding_chunked_gzip", "GET", Ok("Transfer-Encoding: chunked, gzip\r\n"), kCoding},
    {"coding_with_parameter", "GET", Ok("Transfer-Encoding: chunked;q=1\r\n"), kCoding},
    {"coding_in_http_1_0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
     " invalid: HTTP/1.0 has no Transfer-Encoding"},
    {"head_with_length", "HEAD", Ok("Content-Length: 5\r\n"), "200 .&"},
    {"head_with_coding", "HEAD", Ok("Transfer-Encoding: chunked\r\n"), "200 .&"},
    {"head_with_content", "HEAD", Ok("Content-Length: 5\r\n", "hello"), "200 ."},
    {"head_with_two_lengths", "HEAD", Ok("Content-Length: 5\r\nContent-Length: 6\r\n"), kTwice},
    {"no_content", "GET", "HTTP/1.1 204 No Content\r\n\r\n", "204 .&"},
    {"no_content_of_length_0", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
     "204 .&"},
    {"no_content_with_length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
     kNoContent},
    {"no_content_with_coding", "GET",
     "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", kNoContent},
    {"no_content_and_more", "GET", "HTTP/1.1 204 No Content\r\n\r\nx", "204 ."},
    {"not_modified", "GET", "HTTP/1.1 304 Not Modified\r\n\r\n", "304 .&"},
    {"not_modified_with_length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
     "304 .&"},
    {"not_modified_with_content", "GET",
     "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", "304 ."},
};

const ResponseCase kInterims[] = {
    {"continue", "POST", "HTTP/1.1 100 Continue\r\n\r\n" + Line("HTTP/1.1 200 OK"), "100 200 .&"},
    {"early_hints_twice", "GET",
     "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" +
         Line("HTTP/1.1 200 OK"),
     "103 103 200 .&"},
    {"continue_and_nothing", "POST", "HTTP/1.1 100 Continue\r\n\r\n",
     "100  truncated: the server closed the connection"},
    {"continue_with_length", "POST", "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
     kInterim},
    {"continue_with_coding", "POST", "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
     kInterim},
    {"switch", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi\r\n",
     "101 hi\r\n."},
    {"switch_after_hints", "UPGRADE",
     "HTTP/1.1 103 Early Hints\r\n\r\n"
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
     "103 101 ."},
    {"switch_refused", "UPGRADE", Ok("Content-Length: 2\r\n", "no"), "200 no.&"},
    {"switch_that_nobody_asked_for", "GET",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
     kSwitch},
    {"switch_to_another_protocol", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", kSwitch},
    {"switch_to_two_protocols", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n"
     "Connection: Upgrade\r\n\r\n",
     kSwitch},
    {"switch_to_nothing", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", kSwitch},
    {"switch_without_connection", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", kSwitch},
    {"switch_with_length", "UPGRADE",
     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
     "Content-Length: 0\r\n\r\n",
     kInterim},
    {"switch_in_http_1_0", "UPGRADE",
     "HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
     kSwitch},
};

const ResponseCase kChunks[] = {
    {"chunks", "GET", Chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"), "200 abc0123456789.&"},
    {"chunks_none", "GET", Chunked("0\r\n\r\n"), "200 .&"},
    {"chunk_sizes_with_zeros", "GET", Chunked("0003\r\nabc\r\n00\r\n\r\n"), "200 abc.&"},
    {"chunk_extension", "GET", Chunked("3;a=\"b\"\r\nabc\r\n0\r\n\r\n"), "200 abc.&"},
    {"chunks_with_trailers", "GET", Chunked("1\r\na\r\n0\r\nX: 1\r\nY: 2\r\n\r\n"), "200 a +2.&"},
    {"chunks_and_more", "GET", Chunked("0\r\n\r\nx"), "200 ."},
    {"chunks_cut", "GET", Chunked("3\r\nabc\r\n"),
     "200 abc truncated: the server closed the connection"},
    {"chunks_cut_before_the_last_line", "GET", Chunked("0\r\n"),
     "200  truncated: the server closed the connection"},
    {"chunk_size_missing", "GET", Chunked("\r\n"), kChunk},
    {"chunk_size_is_no_number", "GET", Chunked("g\r\n"), kChunk},
    {"chunk_size_signed", "GET", Chunked("+3\r\n"), kChunk},
    {"chunk_size_prefixed", "GET", Chunked("0x3\r\n"), kChunk},
    {"chunk_size_before_space", "GET", Chunked("3 \r\nabc\r\n"), kChunk},
    {"chunk_size_beyond_64_bits", "GET", Chunked("10000000000000003\r\n"), kChunk},
    {"chunk_line_ends_with_lf", "GET", Chunked("3\nabc\r\n"), kChunkLine},
    {"chunk_extension_with_lf", "GET", Chunked("3;a\nb\r\n"), kChunkLine},
    {"chunk_longer_than_its_size", "GET", Chunked("3\r\nabcd\r\n"),
     "200 abc truncated: the chunked body is malformed"},
    {"chunk_data_ends_with_lf", "GET", Chunked("3\r\nabc\n0\r\n\r\n"),
     "200 abc truncated: a line of the chunked body does not end with CR LF"},
    {"last_chunk_ends_with_lf", "GET", Chunked("0\r\n\n"), kChunkLine},
    {"chunk_extension_too_long", "GET", Chunked("3;" + std::string(61, 'a') + "\r\n"),
     "200  truncated: the chunk extensions are too long"},
    {"trailer_with_length", "GET", Chunked("0\r\nContent-Length: 5\r\n\r\n"), kTrailer},
    {"trailer_with_coding", "GET", Chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n"), kTrailer},
    {"trailer_with_connection", "GET", Chunked("0\r\nConnection: close\r\n\r\n"), kTrailer},
    {"trailer_with_cookie", "GET", Chunked("0\r\nSet-Cookie: a=b\r\n\r\n"), kTrailer},
    {"trailer_malformed", "GET", Chunked("0\r\nA b\r\n\r\n"),
     "200  truncated: a field of the trailer is malformed"},
    {"trailer_too_long", "GET", Chunked("0\r\nA: " + std::string(60, 'a') + "\r\n\r\n"),
     "200  truncated: the trailer is too long"},
};

constexpr auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Lines, ResponseFraming, ::testing::ValuesIn(kStatusLines), kName);
INSTANTIATE_TEST_SUITE_P(Fields, ResponseFraming, ::testing::ValuesIn(kFields), kName);
INSTANTIATE_TEST_SUITE_P(Lengths, ResponseFraming, ::testing::ValuesIn(kLengths), kName);
INSTANTIATE_TEST_SUITE_P(Interim, ResponseFraming, ::testing::ValuesIn(kInterims), kName);
INSTANTIATE_TEST_SUITE_P(Chunks, ResponseFraming, ::testing::ValuesIn(kChunks), kName);

}  // namespace response_framing_test
}  // namespace headgate::http::http1
