// If a head is valid in HTTP/2 and written as HTTP/1, a reader of HTTP/1 finds the same request and
// no other, or refuses it.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/http/http2/head_reader.h"
#include "headgate/http/http2/test_translation.h"

namespace {

using namespace headgate::http;
using headgate::http::http2::RequestHeadReader;

// Removes the next line.
std::string_view Line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

// The input is a body's kind, then lines `name=value`, in which \r stands for a line feed, an empty
// line, and the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.empty()) return 0;
  const bool ended = text.front() % 2 == 0;
  text.remove_prefix(1);
  const http2::HeadBounds bounds;
  RequestHeadReader reader(bounds);
  reader.Begin();
  for (std::string_view line = Line(text); !line.empty(); line = Line(text)) {
    std::string field(line);
    for (char& c : field) c = c == '\r' ? '\n' : c;
    const size_t at = std::min(field.find('=', 1), field.size());
    if (!reader.Add(field.substr(0, at), at < field.size() ? field.substr(at + 1) : "")) return 0;
  }
  if (reader.Finish(ended) != RequestHeadReader::Verdict::kValid) return 0;
  const RequestHead& head = reader.head();
  std::string body;
  if (head.body.kind == BodyLength::Kind::kUnsized) body = text;
  if (head.body.kind == BodyLength::Kind::kSized) {
    if (head.body.bytes > 100'000) return 0;
    body = std::string(text.substr(0, head.body.bytes));
    body.resize(head.body.bytes, 'a');
  }
  http2::Translation translation;
  translation.Run(head, body, {});
  HEADGATE_CHECK(translation.Difference(head, body, {}).empty());
  return 0;
}
