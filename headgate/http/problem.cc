#include "headgate/http/problem.h"

#include <array>
#include <iterator>

#include "fmt/format.h"

namespace headgate::http {
namespace {

struct StatusName {
  int status;
  std::string_view text;
};
constexpr StatusName kStatusNames[] = {
    {100, "Continue"},
    {200, "OK"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

// The bytes of the well-formed UTF-8 sequence at the front of `text` (Unicode, table 3-7), or 0; `skip` is then how
// many bytes one U+FFFD stands for: the longest beginning of a well-formed sequence, at least one.
size_t Utf8Sequence(std::string_view text, size_t& skip) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  skip = 1;
  size_t size = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  for (; skip < size; ++skip) {
    if (skip == text.size() || byte(skip) < low || byte(skip) > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return size;
}

void AppendEscaped(char c, std::string& out) {
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

bool IsPlain(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 && u < 0x7F && c != '"' && c != '\\';
}

}  // namespace

std::string_view StatusText(int status) {
  for (const StatusName& name : kStatusNames) {
    if (name.status == status) return name.text;
  }
  return "Error";
}

void AppendJsonString(std::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && IsPlain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;

    size_t skip = 1;
    const size_t sequence = Utf8Sequence(text, skip);
    if (sequence == 0) {
      out.append("\xEF\xBF\xBD");
      text.remove_prefix(skip);
    } else if (sequence == 1) {
      AppendEscaped(text.front(), out);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, sequence));
      text.remove_prefix(sequence);
    }
  }
  out.push_back('"');
}

void AnswerProblem(int status, std::string_view detail, std::string_view hint, Response& response) {
  response.status = status;
  response.AddField("Content-Type", "application/problem+json");
  response.body.assign(R"({"type":"about:blank","title":)");
  AppendJsonString(StatusText(status), response.body);
  fmt::format_to(std::back_inserter(response.body), R"(,"status":{},"detail":)", status);
  AppendJsonString(detail, response.body);
  if (!hint.empty()) {
    response.body.append(R"(,"hint":)");
    AppendJsonString(hint, response.body);
  }
  response.body.append("}\n");
}

}  // namespace headgate::http
