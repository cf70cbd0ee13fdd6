// Parses the head of an HTTP/1 request with Boost.Beast, and validates it. Beast is lenient where a
// proxy in front of Headgate may interpret the bytes differently (request smuggling). Anything
// ambiguous is refused: a body with two lengths, a length with characters other than digits, a
// transfer coding other than chunked, content of GET and HEAD, several Hosts. RFC 9110, RFC 9112.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/handler.h"

namespace headgate::http {

// Content-Length or Transfer-Encoding: the fields that define where a body ends.
bool IsFramingField(std::string_view name);
// Whether a name differs from a framing field only in `_` instead of `-`. Many programs treat the
// two as equal.
bool LooksLikeFramingField(std::string_view name);

class RequestParser {
 public:
  // `bounds` must outlive the parser.
  explicit RequestParser(const Bounds& bounds);
  ~RequestParser();

  // Parses a complete head as found by HeadScan: from the request line to the empty line. The views
  // of the request point into it.
  Refusal ParseHead(std::string_view head);

  // Makes the request point to a copy of `head` at `to`.
  void MoveHead(std::string_view head, const char* to);

  // Drops the request. Call it before its bytes are freed.
  void Forget();

  // The following are valid after ParseHead.
  Request& request() { return request_; }
  std::string_view host() const { return request_.host; }
  bool names_host() const { return names_host_; }  // optional in HTTP/1.0
  bool http11() const { return http11_; }
  bool keep_alive() const { return !asks_close_ && (http11_ || asks_keep_alive_); }
  bool expects_continue() const { return expects_continue_; }
  bool chunked() const { return chunked_; }
  uint64_t content_length() const { return content_length_; }

 private:
  class Beast;

  Refusal JudgeField(std::string_view name, std::string_view value);
  Refusal JudgeHead();
  Refusal TakeAuthority();
  Refusal Explain(int beast_error, std::string_view head) const;

  const Bounds& bounds_;
  std::unique_ptr<Beast> beast_;
  Request request_;
  std::string target_;  // for an absolute target without a path: the path it implies
  Refusal refusal_;     // the first refusal, while Beast is parsing
  uint64_t content_length_ = 0;
  uint32_t hosts_ = 0;
  bool names_host_ = false;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool http11_ = true;
  bool asks_close_ = false;
  bool asks_keep_alive_ = false;
  bool expects_continue_ = false;
  bool expects_other_ = false;
  bool chunked_ = false;
};

}  // namespace headgate::http
