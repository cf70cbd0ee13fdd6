// The head of an HTTP/1 request, parsed by Boost.Beast and judged by us. Beast is lenient where a
// proxy in front of us may read otherwise; whatever two readers could read differently (request
// smuggling) is refused here: a body with two lengths, a length that is more than digits, a
// transfer coding besides chunked, content of GET and HEAD, several Hosts. RFC 9110, RFC 9112.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/handler.h"

namespace headgate::http {

// Content-Length or Transfer-Encoding: what states where a body ends.
bool IsFramingField(std::string_view name);
// A name that differs from a framing field's only in `_` for `-`. Many programs take the two for
// the same.
bool LooksLikeFramingField(std::string_view name);

class RequestParser {
 public:
  // `bounds` must outlive the parser.
  explicit RequestParser(const Bounds& bounds);
  ~RequestParser();

  // Parses a head that HeadScan found whole: from the request line to the empty line. The request's
  // views point into it.
  Refusal ParseHead(std::string_view head);

  // The same request, after `head` has been copied to `to`.
  void MoveHead(std::string_view head, const char* to);

  // Lets go of the request, whose bytes are about to go.
  void Forget();

  // After ParseHead:
  Request& request() { return request_; }
  std::string_view host() const {
    return host_;
  }  // of the target where it is absolute, else of the field
  bool names_host() const { return names_host_; }  // HTTP/1.0 need not
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
  std::string target_;  // of an absolute target without a path: the path it stands for
  std::string_view host_;
  Refusal refusal_;  // the first, while Beast is under way
  uint64_t content_length_ = 0;
  uint32_t hosts_ = 0;
  bool names_host_ = false;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool http11_ = true;
  bool asks_close_ = false;
  bool asks_keep_alive_ = false;
  bool expects_continue_ = false;
  bool chunked_ = false;
};

}  // namespace headgate::http
