// A request on a handle of libcurl, and the answer that has arrived so far: the part that the
// client on an event loop and the blocking one share. Internal to client/http.
//
// Redirects are not followed, and proxies of the environment are not used.
#pragma once

#include <cstddef>
#include <string>

#include "headgate/base/time.h"
#include "headgate/client/http/request.h"

struct curl_slist;

namespace headgate::client::http {

// As options of libcurl state a time; at least 1.
long Milliseconds(base::Duration duration);

struct Exchange {
  static constexpr size_t kHeadBytesMax = size_t{64} << 10;

  // Throws std::runtime_error if libcurl cannot allocate a handle.
  Exchange();
  ~Exchange();
  Exchange(const Exchange&) = delete;

  // Forgets the last exchange.
  void Begin(Request next, size_t body_bytes_max);
  // Sets all options of libcurl that the request needs. `origin` is the beginning of its URL;
  // `addresses` as CURLOPT_RESOLVE reads them, or empty.
  void SetOptions(const std::string& origin, const std::string& addresses);
  // Why libcurl ended with this code.
  std::string Reason(int code) const;

  void* const easy;  // a CURL
  Request request{};
  Answer answer{};
  bool is_too_large = false;  // the head or the body
  bool head_ended = false;

 private:
  struct Callbacks;  // that libcurl calls

  curl_slist* fields_ = nullptr;
  curl_slist* addresses_ = nullptr;
  size_t head_bytes_ = 0;
  size_t body_bytes_max_ = 0;
  std::string error_;  // libcurl writes here
};

}  // namespace headgate::client::http
