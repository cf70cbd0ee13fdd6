#include "headgate/http/http1/request_head.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/http/http1/head_fields.h"
#include "headgate/http/shared_rules.h"
#include "headgate/http/token.h"

namespace headgate::http::http1 {
namespace {

using base::EqualsIgnoreCase;

constexpr std::string_view kLineHint = "a request line is, for example, GET /healthz HTTP/1.1";
constexpr Refusal kRequestLine{400, "the request line is not METHOD TARGET HTTP/1.1", kLineHint};
constexpr Refusal kMethod{400, "the method is not a token", kLineHint};
constexpr Refusal kTargetBytes{
    400, "the request target is empty or has a byte that must be percent-encoded", kLineHint};
constexpr Refusal kTarget{400, "the request target is not a path",
                          "ask for a path, such as /healthz"};
constexpr Refusal kVersion{505, "this server speaks HTTP/1.0, HTTP/1.1 and HTTP/2",
                           "send HTTP/1.1"};
constexpr Refusal kHost{400, "the Host field is not a host",
                        "Host is a name or an address, with or without a port"};
constexpr Refusal kOtherHost{400, "the target and the Host field name different hosts", kAmbiguous};

// Whether `version` is HTTP/d.d.
bool IsVersion(std::string_view version) {
  return version.size() == 8 && version.starts_with("HTTP/") && base::IsDigit(version[5]) &&
         version[6] == '.' && base::IsDigit(version[7]);
}

bool IsTargetByte(char c) { return c > 0x20 && c < 0x7f && c != '#'; }

Refusal ReadRequestLine(std::string_view line, RequestHead& request, std::string_view& target) {
  const size_t first = line.find(' ');
  const std::string_view method = line.substr(0, first);
  if (!IsToken(method)) return kMethod;
  if (first == line.npos) return kRequestLine;
  line.remove_prefix(first + 1);
  const size_t second = line.find(' ');
  target = line.substr(0, second);
  if (target.empty() || !std::all_of(target.begin(), target.end(), IsTargetByte))
    return kTargetBytes;
  if (second == line.npos) return kRequestLine;
  const std::string_view version = line.substr(second + 1);
  if (!IsVersion(version)) return kRequestLine;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return kVersion;
  request.version = version == "HTTP/1.1" ? Version::kHttp11 : Version::kHttp10;
  request.method.assign(method);
  return method == "CONNECT" ? kNoConnect : Refusal{};
}

// Splits a target of the form http://authority/path. Returns whether it had this form.
bool TakeAuthority(std::string_view scheme, std::string_view& target, std::string_view& authority) {
  if (!EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) return false;
  std::string_view rest = target.substr(scheme.size());
  if (!rest.starts_with("://")) return false;
  rest.remove_prefix(3);
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  authority = rest.substr(0, end);
  target = rest.substr(end);
  return true;
}

Refusal SetTarget(std::string_view target, std::string_view scheme,
                  const ConnectionFields& connection, RequestHead& request) {
  if (connection.host_count > 1) return {400, "several Host fields", kAmbiguous};
  if (connection.host_count == 0 && request.version == Version::kHttp11)
    return {400, "no Host field", "HTTP/1.1 requires it"};
  if (connection.host_count == 1 && !IsAuthority(connection.host)) return kHost;
  request.authority.assign(connection.host);
  if (target.front() == '/' || (target == "*" && request.method == "OPTIONS")) {
    request.target.assign(target);
    return {};
  }
  std::string_view authority;
  if (!TakeAuthority(scheme, target, authority) || !IsAuthority(authority)) return kTarget;
  if (connection.host_count == 1 && !EqualsIgnoreCase(authority, connection.host))
    return kOtherHost;
  request.authority.assign(authority);
  // RFC 9112, 3.2.4: a URI without a path means "*" for OPTIONS.
  request.target.assign(target.starts_with('/')                         ? ""
                        : target.empty() && request.method == "OPTIONS" ? "*"
                                                                        : "/");
  request.target.append(target);
  return {};
}

// The protocol of an Upgrade that is passed on. Any other Upgrade is ignored, as RFC 9110, 7.8
// allows. It is ignored if it is a list or names HTTP, if Connection does not name it, or if the
// request has content.
std::string_view Protocol(const RequestHead& request, const ConnectionFields& connection) {
  const std::string_view protocol = connection.upgrade_to;
  const bool usable = connection.upgrade && request.method == "GET" &&
                      request.version == Version::kHttp11 && !connection.chunked &&
                      connection.length.value_or(0) == 0 &&
                      std::all_of(protocol.begin(), protocol.end(),
                                  [](char c) { return IsTokenChar(c) || c == '/'; });
  return usable && !CarriesHttp(protocol) ? protocol : std::string_view();
}

}  // namespace

Refusal ReadRequestHead(std::string_view head, const RequestRules& rules, RequestHead& request,
                        bool& keep_alive) {
  const size_t line_end = head.find('\r');
  std::string_view target;
  if (const Refusal refusal = ReadRequestLine(head.substr(0, line_end), request, target))
    return refusal;
  // If the fields are refused, this much is known.
  request.target.assign(target.starts_with('/') ? target : "");
  request.authority.clear();
  request.fields.Clear();
  ConnectionFields connection;
  const std::string_view lines = head.substr(line_end + 2, head.size() - line_end - 4);
  if (const Refusal refusal = ReadFieldLines(lines, rules.bounds, rules.never_nominated,
                                             rules.keeps_nominated, request.fields, connection)) {
    return refusal;
  }
  if (const Refusal refusal = SetTarget(target, rules.scheme, connection, request)) return refusal;

  const bool http11 = request.version == Version::kHttp11;
  if (connection.chunked && !http11) return {400, "HTTP/1.0 has no Transfer-Encoding", kAmbiguous};
  if (connection.length.value_or(0) > rules.bounds.body_bytes_max) return kBodyTooLarge;
  const bool has_content = connection.chunked || connection.length.value_or(0) > 0;
  if (connection.expects_other && has_content && http11) return kOtherExpectation;

  request.scheme.assign(rules.scheme);
  request.protocol.assign(Protocol(request, connection));
  request.body = connection.chunked ? BodyLength{.kind = BodyLength::Kind::kUnsized}
                 : connection.length && request.protocol.empty()
                     ? BodyLength{.kind = BodyLength::Kind::kSized, .bytes = *connection.length}
                     : BodyLength{};
  request.expects_continue = connection.expects_continue && has_content && http11;
  request.accepts_trailers = connection.accepts_trailers && http11;
  keep_alive = !connection.close && (http11 || connection.keep_alive);
  return {};
}

}  // namespace headgate::http::http1
