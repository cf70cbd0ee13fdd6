#include "headgate/http/http1/message_writer.h"

#include <charconv>
#include <iterator>

#include "headgate/base/check.h"
#include "headgate/http/handler.h"
#include "headgate/http/problem.h"
#include "headgate/http/shared_rules.h"

namespace headgate::http::http1 {
namespace {

using Kind = BodyLength::Kind;

void AppendNumber(uint64_t value, int base, std::string& out) {
  char digits[20];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value, base);
  out.append(digits, end);
}

void AppendField(std::string_view name, std::string_view value, std::string& out) {
  out.append(name).append(": ").append(value).append("\r\n");
}

void AppendFields(const Fields& fields, std::string& out) {
  for (const auto [name, value] : fields) AppendField(name, value, out);
}

void AppendLength(const BodyLength& length, std::string& out) {
  if (length.kind == Kind::kUnsized) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else {
    out.append("Content-Length: ");
    AppendNumber(length.bytes, 10, out);
    out.append("\r\n");
  }
}

}  // namespace

void BodyWriter::Write(std::string_view data, std::string& out) {
  if (data.empty()) return;  // an empty chunk would be the last one
  switch (framing_) {
    case Framing::kDropped:
      return;
    case Framing::kSized:
      HEADGATE_CHECK(data.size() <= left_);
      left_ -= data.size();
      out.append(data);
      return;
    case Framing::kChunked:
      AppendNumber(data.size(), 16, out);
      out.append("\r\n").append(data).append("\r\n");
      return;
    case Framing::kUntilEnd:
      out.append(data);
      return;
  }
}

bool BodyWriter::End(const Fields* trailers, std::string& out) {
  if (framing_ == Framing::kChunked) {
    out.append("0\r\n");
    if (trailers != nullptr) {
      for (const auto [name, value] : *trailers) {
        if (MayBeInTrailer(name, {})) AppendField(name, value, out);
      }
    }
    out.append("\r\n");
  }
  return framing_ != Framing::kSized || left_ == 0;
}

void WriteResponseHead(int status, const Fields& fields, const ResponseLines& lines,
                       std::string& out) {
  out.append("HTTP/1.1 ");
  AppendNumber(static_cast<uint64_t>(status), 10, out);
  out.append(" ").append(StatusText(status)).append("\r\n");
  AppendFields(fields, out);
  if (lines.length != nullptr) AppendLength(*lines.length, out);
  if (!lines.connection.empty()) AppendField("Connection", lines.connection, out);
  if (!lines.upgrade.empty()) AppendField("Upgrade", lines.upgrade, out);
  out.append("\r\n");
}

void WriteRequestHead(const RequestHead& head, BodyWriter& body, std::string& out) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  AppendField("Host", head.authority, out);
  AppendFields(head.fields, out);
  body.Begin(BodyWriter::Framing::kDropped);
  switch (head.body.kind) {
    case Kind::kNone:
      // RFC 9110, 8.6: the server expects content of these.
      if (head.protocol.empty() && HasBody(head.method)) AppendLength({}, out);
      break;
    case Kind::kSized:
      AppendLength(head.body, out);
      body.Begin(BodyWriter::Framing::kSized, head.body.bytes);
      break;
    case Kind::kUnsized:
      AppendLength(head.body, out);
      body.Begin(BodyWriter::Framing::kChunked);
      break;
    case Kind::kTunnel:
      HEADGATE_CHECK(head.body.kind != Kind::kTunnel);  // a tunnel begins with the answer
  }
  if (head.expects_continue) out.append("Expect: 100-continue\r\n");
  if (!head.protocol.empty()) {
    out.append(head.accepts_trailers ? "Connection: Upgrade, TE\r\n" : "Connection: Upgrade\r\n");
    AppendField("Upgrade", head.protocol, out);
  } else if (head.accepts_trailers) {
    out.append("Connection: TE\r\n");
  }
  if (head.accepts_trailers) out.append("TE: trailers\r\n");
  out.append("\r\n");
}

}  // namespace headgate::http::http1
