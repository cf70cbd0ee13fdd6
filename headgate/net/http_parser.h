// One HTTP/1 request's bytes, parsed by Boost.Beast and judged by us. Beast is generous where a proxy in front of us
// may read otherwise; whatever two readers could read differently (request smuggling) is refused here: a body with two
// lengths, a length that is more than digits, a transfer coding besides chunked, folded lines, several Hosts.
// RFC 9110, RFC 9112.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/net/http.h"

namespace headgate::net {

struct HttpBounds {
  // The request line. Raise it for targets with long queries.
  size_t line_bytes_max = 8 * 1024;
  // Request line and fields together; also a chunked body's trailer, and the line before each chunk.
  size_t head_bytes_max = 16 * 1024;
  size_t fields_max = 100;
  // A request's content. Raise it for requests with very many descriptors.
  size_t body_bytes_max = size_t{1} << 20;
};

// Why a request is refused; status 0 where it is not.
struct HttpRefusal {
  int status = 0;
  std::string_view detail;
  std::string_view hint;

  explicit operator bool() const { return status != 0; }
};

class HttpParser {
 public:
  // `bounds` must outlive the parser.
  explicit HttpParser(const HttpBounds& bounds);
  ~HttpParser();

  // Parses a head that is whole: from the request line to the empty line. The request's views point into it.
  HttpRefusal ParseHead(std::string_view head);

  // The same request, after its head has been copied to `to`.
  void MoveHead(const char* from, const char* to);

  // Takes what is there of a chunked body, appends its content to `body` and says how many bytes it took. Call it with
  // what it has not taken and more, until it is done.
  struct Chunks {
    size_t taken = 0;
    bool done = false;
    HttpRefusal refusal;
  };
  Chunks TakeChunks(std::string_view bytes, std::string& body);

  // Lets go of the request, whose bytes are about to go.
  void Forget();

  // After ParseHead:
  HttpRequest& request() { return request_; }
  std::string_view host() const { return host_; }  // of the target where it is absolute, else of the field
  bool names_host() const { return names_host_; }  // HTTP/1.0 need not
  bool http11() const { return http11_; }
  bool keep_alive() const { return !asks_close_ && (http11_ || asks_keep_alive_); }
  bool expects_continue() const { return expects_continue_; }
  bool chunked() const { return chunked_; }
  uint64_t content_length() const { return content_length_; }

 private:
  class Beast;

  HttpRefusal JudgeField(std::string_view name, std::string_view value);
  HttpRefusal JudgeHead();
  HttpRefusal TakeAuthority();
  HttpRefusal Explain(int beast_error, std::string_view head) const;

  const HttpBounds& bounds_;
  std::unique_ptr<Beast> beast_;
  HttpRequest request_;
  std::string_view host_;
  HttpRefusal refusal_;  // the first, while Beast is under way
  uint64_t content_length_ = 0;
  uint32_t hosts_ = 0;
  bool names_host_ = false;
  bool has_length_ = false;
  bool has_coding_ = false;
  bool in_trailer_ = false;
  bool http11_ = true;
  bool asks_close_ = false;
  bool asks_keep_alive_ = false;
  bool expects_continue_ = false;
  bool chunked_ = false;
};

}  // namespace headgate::net
