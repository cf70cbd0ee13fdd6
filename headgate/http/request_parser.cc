#include "headgate/http/request_parser.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "headgate/base/text.h"

namespace headgate::http {
namespace {

namespace beast_http = boost::beast::http;
using BeastError = boost::beast::error_code;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Whether a request line ends with a well-formed version other than HTTP/1.
bool NamesOtherVersion(std::string_view line) {
  constexpr size_t kVersionSize = 8;  // HTTP/2.0
  if (line.size() <= kVersionSize) return false;
  const std::string_view version = line.substr(line.size() - kVersionSize);
  return line[line.size() - kVersionSize - 1] == ' ' && version.starts_with("HTTP/") &&
         base::IsDigit(version[5]) && version[6] == '.' && base::IsDigit(version[7]) &&
         version != "HTTP/1.1" && version != "HTTP/1.0";
}

// Roughly RFC 3986's reg-name, IP-literal and port, without user information.
bool IsHostText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return base::IsLetterOrDigit(c) ||
           std::string_view("-._~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
  });
}

// Whether `token` is in a comma-separated list.
bool HasToken(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    if (EqualsIgnoreCase(base::TakeListItem(list), token)) return true;
  }
  return false;
}

constexpr std::string_view kFramingFields[] = {"Content-Length", "Transfer-Encoding"};

constexpr std::string_view kRequestLine = "a request line is, for example, GET /healthz HTTP/1.1";
constexpr Refusal kLengthTwice{400, "the length of the body is stated twice", kAmbiguous};

}  // namespace

bool IsFramingField(std::string_view name) {
  return std::any_of(std::begin(kFramingFields), std::end(kFramingFields),
                     [&](std::string_view framing) { return EqualsIgnoreCase(name, framing); });
}

bool LooksLikeFramingField(std::string_view name) {
  if (name.find('_') == std::string_view::npos) return false;
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return IsFramingField(dashed);
}

// Beast's callbacks, called in the order of the bytes.
class RequestParser::Beast {
 public:
  explicit Beast(RequestParser& owner) : owner_(owner) {}

  void Begin() {
    parser_.emplace(owner_);
    parser_->header_limit(static_cast<uint32_t>(owner_.bounds_.head_bytes_max));
    parser_->body_limit(boost::none);
  }

  size_t Put(std::string_view bytes, BeastError& error) {
    return parser_->put(boost::beast::net::const_buffer(bytes.data(), bytes.size()), error);
  }

 private:
  struct Parser final : beast_http::basic_parser<true> {
    explicit Parser(RequestParser& o) : owner(o) {}

    void on_request_impl(beast_http::verb /*verb*/, boost::beast::string_view method,
                         boost::beast::string_view target, int version,
                         BeastError& error) override {
      error = {};
      owner.request_.method = View(method);
      owner.request_.target = View(target);
      owner.http11_ = version >= 11;
    }
    void on_field_impl(beast_http::field /*field*/, boost::beast::string_view name,
                       boost::beast::string_view value, BeastError& error) override {
      error = {};
      owner.refusal_ = owner.JudgeField(View(name), View(value));
      if (owner.refusal_) error = beast_http::error::bad_field;
    }
    void on_header_impl(BeastError& error) override { error = {}; }
    // Beast never sees a byte of a body.
    void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                           BeastError& error) override {
      error = {};
    }
    std::size_t on_body_impl(boost::beast::string_view /*text*/, BeastError& /*error*/) override {
      return 0;
    }
    void on_chunk_header_impl(std::uint64_t /*size*/, boost::beast::string_view /*extensions*/,
                              BeastError& /*error*/) override {}
    std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, boost::beast::string_view /*text*/,
                                   BeastError& /*error*/) override {
      return 0;
    }
    void on_finish_impl(BeastError& error) override { error = {}; }
    void on_response_impl(int /*code*/, boost::beast::string_view /*reason*/, int /*version*/,
                          BeastError& /*error*/) override {}  // called only for responses

    RequestParser& owner;
  };

  RequestParser& owner_;
  std::optional<Parser> parser_;
};

RequestParser::RequestParser(const Bounds& bounds)
    : bounds_(bounds), beast_(std::make_unique<Beast>(*this)) {}
RequestParser::~RequestParser() = default;

void RequestParser::Forget() {
  request_.method = request_.target = request_.body = request_.host = {};
  request_.fields.clear();
  refusal_ = {};
  content_length_ = 0;
  hosts_ = 0;
  names_host_ = has_length_ = has_coding_ = expects_continue_ = expects_other_ = chunked_ = false;
  asks_close_ = asks_keep_alive_ = false;
}

Refusal RequestParser::ParseHead(std::string_view head) {
  Forget();
  beast_->Begin();
  BeastError error;
  const size_t taken = beast_->Put(head, error);
  if (refusal_) return refusal_;
  if (error) return Explain(error.value(), head);
  if (taken != head.size())
    return {400, "the head of the request ends in the middle", kRequestLine};
  return JudgeHead();
}

Refusal RequestParser::Explain(int beast_error, std::string_view head) const {
  switch (static_cast<beast_http::error>(beast_error)) {
    case beast_http::error::bad_method:
      return {400, "the method is not a token", kRequestLine};
    case beast_http::error::bad_target:
      return {400, "the request target is empty or has a byte that must be percent-encoded",
              kRequestLine};
    case beast_http::error::bad_version:
      if (NamesOtherVersion(head.substr(0, head.find('\r')))) {
        return {505, "this server speaks HTTP/1.0 and HTTP/1.1", "send HTTP/1.1"};
      }
      return {400, "the request line is not METHOD TARGET HTTP/1.1", kRequestLine};
    case beast_http::error::bad_content_length:
    case beast_http::error::multiple_content_length:
    case beast_http::error::bad_transfer_encoding:
      return {400, "the length of the body is stated twice, or is not a number", kAmbiguous};
    default:
      return {400, "a field of the head is malformed",
              "a field is NAME: VALUE, without control characters"};
  }
}

Refusal RequestParser::JudgeField(std::string_view name, std::string_view value) {
  if (request_.fields.size() == bounds_.fields_max)
    return {431, "too many fields", "send fewer fields"};
  request_.fields.emplace_back(name, value);
  if (EqualsIgnoreCase(name, "Host")) {
    if (++hosts_ > 1) return {400, "several Host fields", kAmbiguous};
    if (!IsHostText(value))
      return {400, "the Host field is not a host",
              "Host is a name or an address, with or without a port"};
    request_.host = value;
    names_host_ = true;
  } else if (EqualsIgnoreCase(name, "Content-Length")) {
    if (has_length_ || has_coding_) return kLengthTwice;
    if (value.empty() || !std::all_of(value.begin(), value.end(), base::IsDigit)) {
      return {400, "Content-Length is not a number", "write Content-Length in decimal digits only"};
    }
    has_length_ = true;
    for (const char digit : value) {
      content_length_ = content_length_ * 10 + static_cast<uint64_t>(digit - '0');
      if (content_length_ > bounds_.body_bytes_max) return kBodyTooLarge;
    }
  } else if (EqualsIgnoreCase(name, "Transfer-Encoding")) {
    if (has_length_ || has_coding_) return kLengthTwice;
    if (!http11_) return {400, "HTTP/1.0 has no Transfer-Encoding", kAmbiguous};
    if (!EqualsIgnoreCase(value, "chunked")) {
      return {501, "chunked is the only transfer coding that this server takes",
              "send Content-Length, or Transfer-Encoding: chunked"};
    }
    has_coding_ = chunked_ = true;
  } else if (EqualsIgnoreCase(name, "Connection")) {
    asks_close_ = asks_close_ || HasToken(value, "close");
    asks_keep_alive_ = asks_keep_alive_ || HasToken(value, "keep-alive");
  } else if (EqualsIgnoreCase(name, "Expect") && http11_) {
    (EqualsIgnoreCase(value, "100-continue") ? expects_continue_ : expects_other_) = true;
  } else if (LooksLikeFramingField(name)) {
    return {400, "a field looks like one that states the length of the body", kAmbiguous};
  }
  return {};
}

Refusal RequestParser::JudgeHead() {
  if (http11_ && !names_host_) return {400, "no Host field", "HTTP/1.1 requires it"};
  if (Refusal refusal = TakeAuthority()) return refusal;
  const std::string_view method = request_.method;
  if ((method == "GET" || method == "HEAD") && (chunked_ || content_length_ > 0)) {
    return {400, "GET and HEAD requests have no content",
            "send the request without a body; POST carries one"};
  }
  // Without a body there is nothing to expect; proxies pass on the field of their clients.
  if (expects_other_ && (chunked_ || content_length_ > 0)) {
    return {417, "100-continue is the only expectation that this server supports",
            "send the request without Expect"};
  }
  return {};
}

// Handles http://host:port/path, the form of a request to a proxy. Its host overrides the Host
// field (RFC 9112, 3.2.2).
Refusal RequestParser::TakeAuthority() {
  std::string_view& target = request_.target;
  if (target.front() == '/' || target == "*") return {};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualsIgnoreCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    request_.host = target.substr(0, end);
    names_host_ = true;
    target.remove_prefix(end);
    if (request_.host.empty() || !IsHostText(request_.host)) break;
    if (!target.starts_with('/')) {
      target_ = "/";
      target_ += target;
      target = target_;
    }
    return {};
  }
  return {400, "the request target is not a path", "ask for a path, such as /healthz"};
}

void RequestParser::MoveHead(std::string_view head, const char* to) {
  const auto move = [&](std::string_view& view) {
    // An empty view may point anywhere, and the target may point into target_.
    const bool inside = !view.empty() && std::less_equal<>()(head.data(), view.data()) &&
                        std::less<>()(view.data(), head.data() + head.size());
    if (inside) view = {to + (view.data() - head.data()), view.size()};
  };
  move(request_.method);
  move(request_.target);
  move(request_.host);
  for (auto& [name, value] : request_.fields) {
    move(name);
    move(value);
  }
}

}  // namespace headgate::http
