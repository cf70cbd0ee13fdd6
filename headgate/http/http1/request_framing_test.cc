// Requests byte by byte: how each is understood, or why it is refused. Every case is sent whole,
// split in two at every byte, and in single bytes, with the same result. The expectations come from
// RFC 9110 and RFC 9112.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "headgate/http/http1/server_dialogue.h"

namespace headgate::http::http1 {
namespace request_framing_test {

struct RequestCase {
  std::string name;
  std::string input;
  // Each request that reached the application, then the refusal, if there is one:
  // "POST a.example/ A=1; [body] X=2; |" or "400 detail". "!" instead of "|": aborted.
  std::string expected;
};

ServerOptions SmallBounds() {
  return {.bounds = {.line_bytes_max = 200,
                     .head_bytes_max = 400,
                     .chunk_extra_bytes_max = 60,
                     .fields_max = 5,
                     .body_bytes_max = 1000},
          .never_nominated = {"X-Client-Id"}};
}

std::string Text(const Fields& fields) {
  std::string text;
  for (const auto [name, value] : fields) text.append(name).append("=").append(value).append("; ");
  return text;
}

std::string Text(const Received& received) {
  const RequestHead& head = received.head;
  std::string text = head.method + ' ' + head.authority + head.target + ' ' + Text(head.fields);
  if (!head.protocol.empty()) text += "upgrade to " + head.protocol + ' ';
  if (head.body.kind != BodyLength::Kind::kNone) text += '[' + received.body + "] ";
  return text + Text(received.trailers) + (received.aborted ? "! " : received.ended ? "| " : "");
}

// The status and the detail of the refusal at the end of the output.
std::string RefusalIn(std::string_view output) {
  constexpr std::string_view kDetail = "\"detail\":\"";
  const size_t detail = output.find(kDetail);
  if (detail == output.npos) return "";
  const size_t begin = detail + kDetail.size();
  const size_t status = output.rfind("HTTP/1.1 ", detail) + 9;
  return std::string(output.substr(status, 4)) +
         std::string(output.substr(begin, output.find('"', begin) - begin));
}

// Feeds the pieces until the connection closes.
class Feeding {
 public:
  void Feed(std::string_view piece) {
    if (!d_.progress.close) output_ += d_.Say(piece);
  }
  std::string Result() {
    std::string result;
    for (const auto& received : d_.application.requests) result += Text(*received);
    const std::string refusal = RefusalIn(output_);
    EXPECT_EQ(d_.progress.protocol_error, !refusal.empty());
    if (!refusal.empty()) {
      EXPECT_TRUE(d_.progress.close);
      EXPECT_THAT(output_, ::testing::HasSubstr("\r\nConnection: close\r\n"));
    }
    result += refusal;
    while (result.ends_with(' ')) result.pop_back();
    return result;
  }

 private:
  ServerDialogue d_{SmallBounds()};
  std::string output_;
};

class RequestFraming : public ::testing::TestWithParam<RequestCase> {};

TEST_P(RequestFraming, IsTheSameWhereverItIsCut) {
  const std::string_view input = GetParam().input;
  for (size_t cut = 0; cut < input.size(); ++cut) {
    Feeding feeding;
    feeding.Feed(input.substr(0, cut));
    feeding.Feed(input.substr(cut));
    ASSERT_EQ(feeding.Result(), GetParam().expected) << "cut at " << cut;
  }
  Feeding bytes;
  for (size_t i = 0; i < input.size(); ++i) bytes.Feed(input.substr(i, 1));
  EXPECT_EQ(bytes.Result(), GetParam().expected);
}

constexpr char kLineEnd[] = "400 a line of the head does not end with CR LF";
constexpr char kLine[] = "400 the request line is not METHOD TARGET HTTP/1.1";
constexpr char kMethod[] = "400 the method is not a token";
constexpr char kTargetBytes[] =
    "400 the request target is empty or has a byte that must be percent-encoded";
constexpr char kTarget[] = "400 the request target is not a path";
constexpr char kField[] = "400 a field of the head is malformed";
constexpr char kFolded[] = "400 a field is folded over several lines";
constexpr char kTwice[] = "400 the length of the body is stated twice";
constexpr char kNoNumber[] = "400 Content-Length is not a number";
constexpr char kCoding[] = "400 chunked is the only transfer coding";
constexpr char kAlias[] = "400 a field looks like one that states the length of the body";
constexpr char kHost[] = "400 the Host field is not a host";
constexpr char kOtherHost[] = "400 the target and the Host field name different hosts";
constexpr char kNominated[] = "400 Connection names a field that is not its to remove";
constexpr char kVersion[] = "505 this server speaks HTTP/1.0, HTTP/1.1 and HTTP/2";
// With the request that was begun.
constexpr char kChunk[] = "POST a.example/ [] ! 400 the chunked body is malformed";
constexpr char kChunkAfterAbc[] = "POST a.example/ [abc] ! 400 the chunked body is malformed";
constexpr char kChunkLine[] =
    "POST a.example/ [] ! 400 a line of the chunked body does not end with CR LF";
constexpr char kChunkLineAfterAbc[] =
    "POST a.example/ [abc] ! 400 a line of the chunked body does not end with CR LF";
constexpr char kTrailer[] =
    "POST a.example/ [] ! 400 a field of the trailer may only be in the head";
constexpr char kTrailerField[] = "POST a.example/ [] ! 400 a field of the trailer is malformed";

std::string Line(const std::string& line) { return line + "\r\nHost: a.example\r\n\r\n"; }
std::string Host(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }
std::string Chunked(const std::string& body) {
  return Post("Transfer-Encoding: chunked\r\n", body);
}

const RequestCase kRequestLines[] = {
    {"line", Line("GET / HTTP/1.1"), "GET a.example/ |"},
    {"line_of_http_1_0", Line("GET / HTTP/1.0"), "GET a.example/ |"},
    {"line_with_any_token", Line("M-SEARCH!#$%&'*+.^_`|~9 / HTTP/1.1"),
     "M-SEARCH!#$%&'*+.^_`|~9 a.example/ |"},
    {"line_after_an_empty_one", "\r\n" + Line("GET / HTTP/1.1"), "GET a.example/ |"},
    {"line_after_two_empty_ones", "\r\n\r\n" + Line("GET / HTTP/1.1"), kMethod},
    {"target_with_odd_bytes", Line("GET /a;b=c/../%2e%2E/\"<>[]\\^`{|}~?d=/?&e HTTP/1.1"),
     "GET a.example/a;b=c/../%2e%2E/\"<>[]\\^`{|}~?d=/?&e |"},
    {"target_absolute", Line("GET http://a.example/x?y HTTP/1.1"), "GET a.example/x?y |"},
    {"target_absolute_without_path", Line("GET http://a.example HTTP/1.1"), "GET a.example/ |"},
    {"target_of_options", Line("OPTIONS * HTTP/1.1"), "OPTIONS a.example* |"},
    {"target_absolute_and_no_host_field", "GET http://b.example/x HTTP/1.0\r\n\r\n",
     "GET b.example/x |"},
    {"garbage", "\x01\x02\x03\r\n\r\n", kMethod},
    {"tls_hello", "\x16\x03\x01\r\n\r\n", kMethod},
    {"method_only", Line("GET"), kLine},
    {"method_empty", Line(" / HTTP/1.1"), kMethod},
    {"method_with_bracket", Line("GE(T / HTTP/1.1"), kMethod},
    {"method_with_high_byte", Line("G\xC3\x89T / HTTP/1.1"), kMethod},
    {"method_after_space", " " + Line("GET / HTTP/1.1"), kMethod},
    {"tab_instead_of_space", Line("GET\t/ HTTP/1.1"), kMethod},
    {"two_spaces_before_target", Line("GET  / HTTP/1.1"), kTargetBytes},
    {"two_spaces_behind_target", Line("GET /  HTTP/1.1"), kLine},
    {"space_behind_version", Line("GET / HTTP/1.1 "), kLine},
    {"space_in_target", Line("GET /a b HTTP/1.1"), kLine},
    {"version_missing", Line("GET /"), kLine},
    {"version_0_9", Line("GET / HTTP/0.9"), kVersion},
    {"version_1_2", Line("GET / HTTP/1.2"), kVersion},
    {"version_2_0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", kVersion},
    {"version_lower_case", Line("GET / http/1.1"), kLine},
    {"version_long", Line("GET / HTTP/1.10"), kLine},
    {"version_short", Line("GET / HTTP/1"), kLine},
    {"version_of_another_protocol", Line("GET / HTTQ/1.1"), kLine},
    {"target_with_fragment", Line("GET /a#b HTTP/1.1"), kTargetBytes},
    {"target_with_control", Line("GET /a\x01 HTTP/1.1"), kTargetBytes},
    {"target_with_del", Line("GET /a\x7f HTTP/1.1"), kTargetBytes},
    {"target_with_tab", Line("GET /a\tb HTTP/1.1"), kTargetBytes},
    {"target_with_high_byte", Line("GET /\xC3\xA9 HTTP/1.1"), kTargetBytes},
    {"target_with_0xff", Line("GET /\xFF HTTP/1.1"), kTargetBytes},
    {"target_relative", Line("GET a/b HTTP/1.1"), kTarget},
    {"target_star_of_get", Line("GET * HTTP/1.1"), kTarget},
    {"target_of_another_scheme", Line("GET ftp://a.example/ HTTP/1.1"), kTarget},
    {"target_of_another_connection", Line("GET https://a.example/ HTTP/1.1"), kTarget},
    {"target_with_user", Line("GET http://u@a.example/ HTTP/1.1"), kTarget},
    {"target_with_user_and_password", Line("GET http://u:p@a.example/ HTTP/1.1"), kTarget},
    {"target_with_empty_authority", Line("GET http:///x HTTP/1.1"), kTarget},
    {"target_with_another_host", Line("GET http://b.example/ HTTP/1.1"), kOtherHost},
    {"target_with_another_port", Line("GET http://a.example:81/ HTTP/1.1"), kOtherHost},
    {"connect", Line("CONNECT a.example:80 HTTP/1.1"),
     "501 this server does not open tunnels by CONNECT"},
    {"line_too_long", Line("GET /" + std::string(200, 'a') + " HTTP/1.1"),
     "414 the request line is too long"},
    {"line_ends_with_lf", "GET / HTTP/1.1\nHost: a.example\r\n\r\n", kLineEnd},
    {"line_ends_with_cr", "GET / HTTP/1.1\rHost: a.example\r\n\r\n", kLineEnd},
    {"line_ends_with_lf_cr", "GET / HTTP/1.1\n\rHost: a.example\r\n\r\n", kLineEnd},
    {"lf_first", "\n" + Line("GET / HTTP/1.1"), kLineEnd},
};

const RequestCase kFields[] = {
    {"fields", Get("A:1\r\nb: \t 2 3\t \r\nC:\r\n"), "GET a.example/ A=1; b=2 3; C=; |"},
    {"field_with_high_bytes", Get("A: \xC3\xA9\xFF\r\n"), "GET a.example/ A=\xC3\xA9\xFF; |"},
    {"fields_of_the_connection",
     Get("Connection: X, close\r\nX: 1\r\nKeep-Alive: 5\r\nTE: gzip\r\n"), "GET a.example/ |"},
    {"connection_names_nothing_that_is_there", Get("Connection: , x,,y ,\r\nA: 1\r\n"),
     "GET a.example/ A=1; |"},
    {"folded", Get("A: b\r\n c\r\n"), kFolded},
    {"folded_with_tab", Get("A: b\r\n\tc\r\n"), kFolded},
    {"folded_first", Host(" Host: a.example\r\n"), kFolded},
    {"space_before_colon", Get("A : b\r\n"), kField},
    {"space_before_colon_of_length", Post("Content-Length : 5\r\n", "hello"), kField},
    {"space_before_colon_of_coding", Post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), kField},
    {"space_in_name", Get("A B: c\r\n"), kField},
    {"control_in_name", Get("A\x01: b\r\n"), kField},
    {"high_byte_in_name", Get("\xC3\xA9: b\r\n"), kField},
    {"name_empty", Get(": b\r\n"), kField},
    {"no_colon", Get("AAA\r\n"), kField},
    {"nul_in_value", Get(std::string("A: b\0c\r\n", 8)), kField},
    {"control_in_value", Get("A: b\x0b\r\n"), kField},
    {"del_in_value", Get("A: b\x7f\r\n"), kField},
    {"bare_cr_in_value", Get("A: b\rc\r\n"), kLineEnd},
    {"bare_lf_in_value", Get("A: b\nc: d\r\n"), kLineEnd},
    {"head_ends_with_lf", "GET / HTTP/1.1\r\nHost: a.example\r\n\n", kLineEnd},
    {"too_many_fields", Get("1: a\r\n2: a\r\n3: a\r\n4: a\r\n5: a\r\n"), "431 too many fields"},
    {"head_too_long", Get("A: " + std::string(400, 'a') + "\r\n"),
     "431 the head of the request is too long"},
    {"connection_is_no_list_of_tokens", Get("Connection: a b\r\n"), kField},
    {"connection_names_host", Get("Connection: Host\r\n"), kNominated},
    {"connection_names_length", Post("Connection: content-length\r\nContent-Length: 1\r\n", "x"),
     kNominated},
    {"connection_names_coding",
     Post("Connection: close, Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
     kNominated},
    {"connection_names_content_type", Get("Connection: Content-Type\r\n"), kNominated},
    {"connection_names_authorization", Get("Connection: Authorization\r\n"), kNominated},
    {"connection_names_cookie", Get("Connection: keep-alive\r\nConnection: cookie\r\n"),
     kNominated},
    {"connection_names_forwarded", Get("Connection: Forwarded\r\n"), kNominated},
    {"connection_names_x_forwarded_for", Get("Connection: x-forwarded-for\r\n"), kNominated},
    {"connection_names_itself", Get("Connection: Connection\r\n"), kNominated},
    {"connection_names_the_client", Get("X-Client-Id: me\r\nConnection: close, x-CLIENT-id\r\n"),
     kNominated},
    {"connection_names_many", Get("Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\r\n"),
     "400 Connection names too many fields"},
};

const RequestCase kHosts[] = {
    {"host_with_port", Host("Host: a.example:8080\r\n"), "GET a.example:8080/ |"},
    {"host_address", Host("Host: 10.0.0.1\r\n"), "GET 10.0.0.1/ |"},
    {"host_address_6", Host("Host: [::1]:80\r\n"), "GET [::1]:80/ |"},
    {"host_none_in_http_1_0", "GET / HTTP/1.0\r\n\r\n", "GET / |"},
    {"host_none", Host("A: b\r\n"), "400 no Host field"},
    {"host_none_beside_absolute_target", "GET http://a.example/ HTTP/1.1\r\n\r\n",
     "400 no Host field"},
    {"host_twice", Host("Host: a.example\r\nHost: b.example\r\n"), "400 several Host fields"},
    {"host_twice_the_same", Host("Host: a.example\r\nhost: a.example\r\n"),
     "400 several Host fields"},
    {"host_twice_in_http_1_0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
     "400 several Host fields"},
    {"host_empty", Host("Host:\r\n"), kHost},
    {"host_list", Host("Host: a.example, b.example\r\n"), kHost},
    {"host_with_slash", Host("Host: a/b\r\n"), kHost},
    {"host_with_space", Host("Host: a b\r\n"), kHost},
    {"host_with_user", Host("Host: u@a.example\r\n"), kHost},
    {"host_with_fragment", Host("Host: a#b\r\n"), kHost},
    {"host_with_high_byte", Host("Host: \xC3\xA9.example\r\n"), kHost},
    {"host_port_is_no_number", Host("Host: a.example:http\r\n"), kHost},
    {"host_port_empty", Host("Host: a.example:\r\n"), kHost},
    {"host_port_too_long", Host("Host: a.example:123456\r\n"), kHost},
    {"host_two_ports", Host("Host: a.example:1:2\r\n"), kHost},
    {"host_bracket_open", Host("Host: [::1\r\n"), kHost},
    {"host_bracket_empty", Host("Host: []\r\n"), kHost},
    {"host_only_port", Host("Host: :80\r\n"), kHost},
};

const RequestCase kLengths[] = {
    {"length", Post("Content-Length: 5\r\n", "hello"), "POST a.example/ [hello] |"},
    {"length_zero", Post("Content-Length: 0\r\n") + Get(""),
     "POST a.example/ [] | GET a.example/ |"},
    {"length_and_pipeline", Post("Content-Length: 5\r\n", "hello") + Get(""),
     "POST a.example/ [hello] | GET a.example/ |"},
    {"length_of_get", Get("Content-Length: 3\r\n") + "abc" + Get(""),
     "GET a.example/ [abc] | GET a.example/ |"},
    {"length_that_looks_like_a_request",
     Post("Content-Length: 38\r\n", "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n") + "\r\n",
     "POST a.example/ [GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n\r\n] |"},
    {"length_and_coding", Post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), kTwice},
    {"coding_and_length", Post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), kTwice},
    {"length_zero_and_coding", Post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), kTwice},
    {"length_twice", Post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), kTwice},
    {"length_twice_different", Post("Content-Length: 5\r\nContent-Length: 6\r\n"), kTwice},
    {"length_list", Post("Content-Length: 5, 5\r\n"), kNoNumber},
    {"length_empty", Post("Content-Length:\r\n"), kNoNumber},
    {"length_negative", Post("Content-Length: -1\r\n"), kNoNumber},
    {"length_signed", Post("Content-Length: +5\r\n"), kNoNumber},
    {"length_hexadecimal", Post("Content-Length: 0x5\r\n"), kNoNumber},
    {"length_with_leading_zero", Post("Content-Length: 05\r\n"), kNoNumber},
    {"length_fraction", Post("Content-Length: 5.0\r\n"), kNoNumber},
    {"length_with_inner_space", Post("Content-Length: 1 0\r\n"), kNoNumber},
    {"length_beyond_64_bits", Post("Content-Length: 18446744073709551621\r\n"),
     "413 the body is too large"},
    {"length_beyond_its_bound", Post("Content-Length: 1001\r\n"), "413 the body is too large"},
    {"length_with_underscore", Post("Content_Length: 5\r\n"), kAlias},
    {"coding_twice", Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), kTwice},
    {"coding_gzip", Post("Transfer-Encoding: gzip\r\n"), kCoding},
    {"coding_identity", Post("Transfer-Encoding: identity\r\n"), kCoding},
    {"coding_empty", Post("Transfer-Encoding:\r\n"), kCoding},
    {"coding_gzip_chunked", Post("Transfer-Encoding: gzip, chunked\r\n"), kCoding},
    {"coding_chunked_gzip", Post("Transfer-Encoding: chunked, gzip\r\n"), kCoding},
    {"coding_chunked_chunked", Post("Transfer-Encoding: chunked, chunked\r\n"), kCoding},
    {"coding_chunked_and_comma", Post("Transfer-Encoding: chunked,\r\n"), kCoding},
    {"coding_with_parameter", Post("Transfer-Encoding: chunked;q=1\r\n"), kCoding},
    {"coding_with_prefix", Post("Transfer-Encoding: xchunked\r\n"), kCoding},
    {"coding_quoted", Post("Transfer-Encoding: \"chunked\"\r\n"), kCoding},
    {"coding_with_vertical_tab",
     Post("Transfer-Encoding: \x0b"
          "chunked\r\n"),
     kField},
    {"coding_in_http_1_0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "400 HTTP/1.0 has no Transfer-Encoding"},
    {"coding_with_underscore", Post("Transfer_Encoding: chunked\r\n"), kAlias},
    {"expectation_unknown", Post("Content-Length: 5\r\nExpect: more\r\n"),
     "417 100-continue is the only expectation that this server supports"},
    {"expectation_without_body", Get("Expect: more\r\n"), "GET a.example/ |"},
};

const RequestCase kChunks[] = {
    {"chunks", Chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n") + Get(""),
     "POST a.example/ [abc0123456789] | GET a.example/ |"},
    {"chunks_none", Chunked("0\r\n\r\n") + Get(""), "POST a.example/ [] | GET a.example/ |"},
    {"chunk_size_with_zeros", Chunked("0003\r\nabc\r\n00\r\n\r\n"), "POST a.example/ [abc] |"},
    {"chunk_extension", Chunked("3;a=\"b;c\";d\r\nabc\r\n0;e\r\n\r\n"), "POST a.example/ [abc] |"},
    {"chunks_with_trailer", Chunked("0\r\nX: 1\r\nY:\t2 \r\n\r\n") + Get(""),
     "POST a.example/ [] X=1; Y=2; | GET a.example/ |"},
    {"chunk_that_looks_like_the_last", Chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"),
     "POST a.example/ [0\r\n\r\n] |"},
    {"chunk_size_missing", Chunked("\r\nabc\r\n"), kChunk},
    {"chunk_size_is_no_number", Chunked("xyz\r\n"), kChunk},
    {"chunk_size_negative", Chunked("-3\r\n"), kChunk},
    {"chunk_size_signed", Chunked("+3\r\n"), kChunk},
    {"chunk_size_prefixed", Chunked("0x3\r\n"), kChunk},
    {"chunk_size_behind_space", Chunked(" 3\r\n"), kChunk},
    {"chunk_size_before_space", Chunked("3 \r\nabc\r\n"), kChunk},
    {"chunk_size_before_tab_and_extension", Chunked("3\t;a\r\nabc\r\n"), kChunk},
    {"chunk_size_beyond_64_bits", Chunked("10000000000000003\r\nabc\r\n"), kChunk},
    {"chunk_size_of_17_digits", Chunked("00000000000000003\r\nabc\r\n"), kChunk},
    {"chunk_size_beyond_its_bound", Chunked("3e9\r\n"),
     "POST a.example/ [] ! 413 the body is too large"},
    {"chunks_beyond_their_bound", Chunked("3\r\nabc\r\n3e6\r\n"),
     "POST a.example/ [abc] ! 413 the body is too large"},
    {"chunk_longer_than_its_size", Chunked("3\r\nabcd\r\n"), kChunkAfterAbc},
    {"chunk_line_ends_with_lf", Chunked("3\nabc\r\n"), kChunkLine},
    {"chunk_line_ends_with_cr", Chunked("3\rabc\r\n"), kChunkLine},
    {"chunk_data_ends_with_lf", Chunked("3\r\nabc\n0\r\n\r\n"), kChunkLineAfterAbc},
    {"chunk_data_ends_with_cr", Chunked("3\r\nabc\r0\r\n\r\n"), kChunkLineAfterAbc},
    {"chunk_extension_with_lf", Chunked("3;a\nb\r\nabc\r\n"), kChunkLine},
    {"chunk_extension_with_cr", Chunked("3;a\rb\r\nabc\r\n"), kChunkLine},
    {"chunk_extension_with_nul", Chunked(std::string("3;\0\r\n", 5)), kChunk},
    {"chunk_extension_too_long", Chunked("3;" + std::string(61, 'a') + "\r\n"),
     "POST a.example/ [] ! 431 the chunk extensions are too long"},
    {"chunk_extensions_as_long_as_the_content",
     Chunked("64\r\n" + std::string(100, 'x') + "\r\n0;" + std::string(160, 'a') + "\r\n\r\n"),
     "POST a.example/ [" + std::string(100, 'x') + "] |"},
    {"chunk_extensions_longer_than_the_content",
     Chunked("64\r\n" + std::string(100, 'x') + "\r\n0;" + std::string(161, 'a') + "\r\n\r\n"),
     "POST a.example/ [" + std::string(100, 'x') + "] ! 431 the chunk extensions are too long"},
    {"last_chunk_ends_with_lf", Chunked("0\r\n\n"), kChunkLine},
    {"trailer_with_length", Chunked("0\r\nContent-Length: 5\r\n\r\n"), kTrailer},
    {"trailer_with_coding", Chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n"), kTrailer},
    {"trailer_with_coding_and_underscore", Chunked("0\r\ntransfer_encoding: x\r\n\r\n"), kTrailer},
    {"trailer_with_host", Chunked("0\r\nHost: b.example\r\n\r\n"), kTrailer},
    {"trailer_with_connection", Chunked("0\r\nConnection: close\r\n\r\n"), kTrailer},
    {"trailer_with_te", Chunked("0\r\nTE: trailers\r\n\r\n"), kTrailer},
    {"trailer_with_authorization", Chunked("0\r\nAuthorization: Basic x\r\n\r\n"), kTrailer},
    {"trailer_with_content_type", Chunked("0\r\ncontent-type: a/b\r\n\r\n"), kTrailer},
    {"trailer_with_forwarded_for", Chunked("0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n"), kTrailer},
    {"trailer_with_the_client", Chunked("0\r\nx-client-id: you\r\n\r\n"), kTrailer},
    {"trailer_with_content_type_and_underscore", Chunked("0\r\ncontent_type: a/b\r\n\r\n"),
     kTrailer},
    {"trailer_with_the_client_and_underscores", Chunked("0\r\nx_client_id: you\r\n\r\n"), kTrailer},
    {"trailer_with_cache_control", Chunked("0\r\nCache-Control: no-store\r\n\r\n"), kTrailer},
    {"trailer_folded", Chunked("0\r\nA: b\r\n c\r\n\r\n"),
     "POST a.example/ [] ! 400 a field is folded over several lines"},
    {"trailer_with_space_before_colon", Chunked("0\r\nA : b\r\n\r\n"), kTrailerField},
    {"trailer_without_colon", Chunked("0\r\nA\r\n\r\n"), kTrailerField},
    {"trailer_with_nul", Chunked(std::string("0\r\nA: \0\r\n\r\n", 11)), kTrailerField},
    {"trailer_with_lf", Chunked("0\r\nA: b\nC: d\r\n\r\n"), kChunkLine},
    {"trailer_too_long", Chunked("0\r\nA: " + std::string(60, 'a') + "\r\n\r\n"),
     "POST a.example/ [] ! 431 the trailer is too long"},
    {"trailer_with_too_many_fields", Chunked("0\r\n1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n\r\n"),
     "POST a.example/ [] ! 431 too many fields"},
};

constexpr auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Lines, RequestFraming, ::testing::ValuesIn(kRequestLines), kName);
INSTANTIATE_TEST_SUITE_P(Fields, RequestFraming, ::testing::ValuesIn(kFields), kName);
INSTANTIATE_TEST_SUITE_P(Hosts, RequestFraming, ::testing::ValuesIn(kHosts), kName);
INSTANTIATE_TEST_SUITE_P(Lengths, RequestFraming, ::testing::ValuesIn(kLengths), kName);
INSTANTIATE_TEST_SUITE_P(Chunks, RequestFraming, ::testing::ValuesIn(kChunks), kName);

}  // namespace request_framing_test
}  // namespace headgate::http::http1
