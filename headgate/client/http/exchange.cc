#include "headgate/client/http/exchange.h"

#include <curl/curl.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "headgate/base/text.h"

namespace headgate::client::http {
namespace {

// The value of the field, if the line is one of this name.
bool TakeField(std::string_view line, std::string_view name, std::string& value) {
  if (!base::EqualsIgnoreCase(line.substr(0, name.size()), name)) return false;
  value = base::Trimmed(line.substr(name.size()));
  return true;
}

}  // namespace

long Milliseconds(base::Duration duration) {
  return std::max<long>(1, std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

struct Exchange::Callbacks {
  static size_t OnField(const char* bytes, size_t /*one*/, size_t size, void* data) {
    Exchange& exchange = *static_cast<Exchange*>(data);
    exchange.head_bytes_ += size;
    if (exchange.head_bytes_ > kHeadBytesMax) {
      exchange.is_too_large = true;
      return 0;
    }
    std::string_view line(bytes, size);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    if (line.empty()) exchange.head_ended = true;
    TakeField(line, "date:", exchange.answer.date) ||
        TakeField(line, "etag:", exchange.answer.etag);
    return size;
  }

  static size_t OnBody(const char* bytes, size_t /*one*/, size_t size, void* data) {
    Exchange& exchange = *static_cast<Exchange*>(data);
    if (exchange.answer.body.size() + size > exchange.body_bytes_max_) {
      exchange.is_too_large = true;
      return 0;
    }
    exchange.answer.body.append(bytes, size);
    return size;
  }
};

Exchange::Exchange() : easy(curl_easy_init()), error_(CURL_ERROR_SIZE, '\0') {
  if (easy == nullptr) throw std::runtime_error("libcurl has no memory");
}

Exchange::~Exchange() {
  curl_easy_cleanup(easy);
  curl_slist_free_all(fields_);
  curl_slist_free_all(addresses_);
}

void Exchange::Begin(Request next, size_t body_bytes_max) {
  request = std::move(next);
  answer = {};
  is_too_large = head_ended = false;
  head_bytes_ = 0;
  body_bytes_max_ = body_bytes_max;
  error_[0] = '\0';
}

void Exchange::SetOptions(const std::string& origin, const std::string& addresses) {
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, (origin + request.target).c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_.data());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Callbacks::OnField);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Callbacks::OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);

  curl_slist_free_all(std::exchange(addresses_, nullptr));
  if (!addresses.empty()) {
    addresses_ = curl_slist_append(nullptr, addresses.c_str());
    curl_easy_setopt(easy, CURLOPT_RESOLVE, addresses_);
  }
  curl_slist_free_all(std::exchange(fields_, nullptr));
  // libcurl would wait for the server's consent to a large body.
  fields_ = curl_slist_append(nullptr, "Expect:");
  for (const std::string& field : request.fields)
    fields_ = curl_slist_append(fields_, field.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields_);
  if (request.method == "GET") return;
  if (request.method != "DELETE") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

std::string Exchange::Reason(int code) const {
  return error_[0] != '\0' ? std::string(error_.c_str())
                           : std::string(curl_easy_strerror(static_cast<CURLcode>(code)));
}

}  // namespace headgate::client::http
