#include "headgate/http/http2/head_reader.h"

#include <algorithm>
#include <utility>

#include "headgate/base/text.h"
#include "headgate/http/shared_rules.h"
#include "headgate/http/token.h"
#include "headgate/wire/request_host.h"
#include "headgate/wire/request_path.h"

namespace headgate::http::http2 {
namespace {

constexpr size_t kFieldOverheadBytes = 32;

// Methods are case-sensitive, but there are readers that are not.
bool IsMethod(std::string_view text) {
  return IsToken(text) && std::none_of(text.begin(), text.end(), base::IsLower);
}

bool IsTarget(std::string_view target, std::string_view method) {
  if (target == "*") return method == "OPTIONS";
  return target.starts_with('/') && wire::IsPlainTarget(target);
}

// Sets a pseudo field, which must not be empty or there twice.
bool SetOnce(std::string& place, std::string_view value) {
  if (!place.empty() || value.empty()) return false;
  place = value;
  return true;
}

}  // namespace

// ---- FieldReader

bool FieldReader::Count(std::string_view name, std::string_view value) {
  ++count_;
  bytes_ += name.size() + value.size() + kFieldOverheadBytes;
  return !too_large();
}

void FieldReader::Restart() {
  host_.clear();
  cookies_.clear();
  length_.reset();
  regular_seen_ = host_seen_ = expectation_seen_ = expects_continue_ = te_trailers_ = false;
  bytes_ = count_ = 0;
}

bool FieldReader::AddRegular(std::string_view name, std::string_view value, Fields& fields) {
  regular_seen_ = true;
  if (!IsFieldName(name) || !IsFieldValue(value)) return false;
  switch (KindOf(name)) {
    case FieldKind::kConnectionSpecific:
      return false;
    case FieldKind::kTe:
      te_trailers_ = true;
      return base::EqualsIgnoreCase(value, "trailers");
    case FieldKind::kHost:
      if (std::exchange(host_seen_, true)) return false;
      host_ = value;
      return true;
    case FieldKind::kContentLength:
      if (length_) return false;
      length_ = ParseLength(value);
      return length_.has_value();
    case FieldKind::kExpect:
      if (std::exchange(expectation_seen_, true)) return false;
      expects_continue_ = base::EqualsIgnoreCase(value, "100-continue");
      return true;
    case FieldKind::kCookie:
      // RFC 9113, 8.2.3: other versions of HTTP have a single Cookie field. Empty fields are left
      // out, because they would add a "; ".
      if (!cookies_.empty() && !value.empty()) cookies_ += "; ";
      cookies_ += value;
      return true;
    case FieldKind::kHttp2Settings:
      return true;
    case FieldKind::kOrdinary:
      if (LooksLikeFramingField(name)) return false;
      break;
  }
  fields.Add(name, value);
  return true;
}

// ---- RequestHeadReader

void RequestHeadReader::Begin() {
  Restart();
  head_ = RequestHead{.version = Version::kHttp2};
  malformed_ = connect_ = false;
}

bool RequestHeadReader::Add(std::string_view name, std::string_view value) {
  if (!Count(name, value) || malformed_) return !malformed_;
  const bool valid = name.starts_with(':') ? !regular_seen_ && AddPseudo(name, value)
                                           : AddRegular(name, value, head_.fields);
  malformed_ = !valid;
  return valid;
}

bool RequestHeadReader::AddPseudo(std::string_view name, std::string_view value) {
  if (name == ":method")
    return (lenient_ ? IsToken(value) : IsMethod(value)) && SetOnce(head_.method, value);
  if (name == ":path") return SetOnce(head_.target, value);
  if (name == ":authority") return SetOnce(head_.authority, value);
  if (name == ":protocol") return IsToken(value) && SetOnce(head_.protocol, value);
  if (name != ":scheme" || !SetOnce(head_.scheme, value)) return false;
  for (char& c : head_.scheme) c = base::ToLower(c);
  return head_.scheme == "http" || head_.scheme == "https";
}

// :authority and Host must agree, and name a host without a user.
bool RequestHeadReader::TakeAuthority() {
  if (head_.authority.empty()) {
    head_.authority = host_;
  } else if (host_seen_ && !base::EqualsIgnoreCase(head_.authority, host_)) {
    return false;
  }
  std::string normalized;
  return IsAuthority(head_.authority) &&
         (lenient_ || wire::NormalizeHost(head_.authority, normalized));
}

RequestHeadReader::Verdict RequestHeadReader::Finish(bool ended) {
  if (malformed_) return Verdict::kMalformed;
  if (too_large()) return Verdict::kTooLarge;
  if (!TakeAuthority() || head_.method.empty()) return Verdict::kMalformed;
  connect_ = head_.method == "CONNECT";
  if (connect_ && head_.protocol.empty()) {
    // RFC 9113, 8.5.
    const bool valid = head_.target.empty() && head_.scheme.empty() && !length_;
    return valid ? Verdict::kConnect : Verdict::kMalformed;
  }
  if (!IsTarget(head_.target, head_.method) || head_.scheme.empty()) return Verdict::kMalformed;
  if (connect_) {
    if (length_) return Verdict::kMalformed;
    if (CarriesHttp(head_.protocol)) return Verdict::kConnect;
    head_.method = "GET";
  } else if (!head_.protocol.empty() || (ended && length_.value_or(0) > 0)) {
    return Verdict::kMalformed;
  } else if (length_) {
    head_.body = {BodyLength::Kind::kSized, *length_};
  } else if (!ended) {
    head_.body.kind = BodyLength::Kind::kUnsized;
  }
  if (expectation_seen_ && !expects_continue_) return Verdict::kOtherExpectation;
  // Without content there is nothing to wait for (RFC 9110, 10.1.1).
  const bool has_content = head_.body.kind == BodyLength::Kind::kUnsized || head_.body.bytes > 0;
  head_.expects_continue = expects_continue_ && has_content;
  head_.accepts_trailers = te_trailers_;
  if (!cookies_.empty()) head_.fields.Add("cookie", cookies_);
  return Verdict::kValid;
}

// ---- ResponseHeadReader

void ResponseHeadReader::Begin() {
  Restart();
  head_ = ResponseHead{.status = 0};
  malformed_ = status_seen_ = false;
}

bool ResponseHeadReader::Add(std::string_view name, std::string_view value) {
  if (!Count(name, value) || malformed_) return !malformed_;
  if (name.starts_with(':')) {
    const bool valid = !regular_seen_ && !std::exchange(status_seen_, true) && name == ":status" &&
                       value.size() == 3 && std::all_of(value.begin(), value.end(), base::IsDigit);
    if (valid) head_.status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
    malformed_ = !valid;
  } else {
    malformed_ = !AddRegular(name, value, head_.fields);
  }
  return !malformed_;
}

ResponseHeadReader::Verdict ResponseHeadReader::Finish(const Request& request, bool ended) {
  if (malformed_ || too_large()) return Verdict::kInvalid;
  const int status = head_.status;
  if (status < 100 || status > 599 || status == 101) return Verdict::kInvalid;
  if (!cookies_.empty()) head_.fields.Add("cookie", cookies_);
  if (status < 200) return ended || length_ ? Verdict::kInvalid : Verdict::kInformational;

  const uint64_t length = length_.value_or(0);
  if (request.tunnel && status < 300) {
    if (length_) return Verdict::kInvalid;
    head_.status = 101;
    head_.body.kind = BodyLength::Kind::kTunnel;
  } else if (status == 204 && length > 0) {
    return Verdict::kInvalid;
  } else if (request.head || status == 304) {
    if (length_) head_.body = {BodyLength::Kind::kSized, length};
  } else if (ended && length > 0) {
    return Verdict::kInvalid;
  } else if (status == 204) {
    // A length of 0 is superfluous, but common.
  } else if (length_) {
    head_.body = {BodyLength::Kind::kSized, length};
  } else if (!ended) {
    head_.body.kind = BodyLength::Kind::kUnsized;
  }
  return Verdict::kFinal;
}

// ---- TrailerReader

void TrailerReader::Begin() {
  Restart();
  fields_.Clear();
  malformed_ = false;
}

bool TrailerReader::Add(std::string_view name, std::string_view value) {
  if (!Count(name, value) || malformed_) return !malformed_;
  malformed_ = !IsFieldName(name) || !IsFieldValue(value) || !MayBeInTrailer(name, never_);
  if (!malformed_) fields_.Add(name, value);
  return !malformed_;
}

}  // namespace headgate::http::http2
