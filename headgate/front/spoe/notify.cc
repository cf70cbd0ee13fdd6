#include "headgate/front/spoe/notify.h"

#include "headgate/wire/spop.h"

namespace headgate::front::spoe {
namespace {

// No `tune.http.maxhdr` of HAProxy is larger.
constexpr size_t kFieldsMax = 32'767;

}  // namespace

NotifyContent Notify::Read(std::string_view payload) {
  if (!ReadMessage(payload)) return NotifyContent::kMalformed;
  const bool several = !payload.empty();
  while (!payload.empty()) {
    if (!ReadMessage(payload)) return NotifyContent::kMalformed;
  }
  if (several) return NotifyContent::kSeveralMessages;
  // HAProxy finds no path in `OPTIONS *`, and none in `GET http://host`, whose path is "/" (RFC
  // 9110, 4.2.3). `OPTIONS http://host` means `OPTIONS *` (RFC 9112, 3.2.4).
  if (has_no_path_ && path_.empty())
    path_ = request_.method == "OPTIONS" && query_.empty() ? "*" : "/";
  target_.assign(path_);
  if (!query_.empty()) target_.append("?").append(query_);
  request_.target = target_;
  request_.fields = fields_;
  return NotifyContent::kRequest;
}

bool Notify::ReadMessage(std::string_view& bytes) {
  // Without `src`, the address of the peer is HAProxy's, not the client's.
  request_ = {.client_statement = mapping::ClientStatement::kMissing};
  fields_.clear();
  texts_.clear();
  path_ = query_ = {};
  has_no_path_ = false;
  const auto name = wire::TakeSpopText(bytes);
  if (!name || bytes.empty()) return false;
  auto arguments = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  for (; arguments > 0; --arguments) {
    if (!ReadArgument(bytes)) return false;
  }
  return true;
}

bool Notify::ReadArgument(std::string_view& bytes) {
  const auto name = wire::TakeSpopText(bytes);
  if (!name) return false;
  const auto value = wire::TakeSpopValue(bytes);
  if (!value) return false;
  using Kind = wire::SpopValue::Kind;
  if (*name == "src") {
    ReadSource(*value);
    return true;
  }
  // HAProxy sends null for an argument that the request does not have.
  if (value->kind == Kind::kNull) {
    has_no_path_ = has_no_path_ || *name == "path";
    return true;
  }
  const std::string_view text =
      value->kind == Kind::kText ? value->text : wire::TextOf(*value, texts_.emplace_back());
  if (*name == "method") {
    request_.method = text;
  } else if (*name == "path") {
    path_ = text;
  } else if (*name == "query") {
    query_ = text;
  } else if (*name == "host") {
    request_.host = text;
  } else if (*name == "headers") {
    return ReadHeaders(text);
  } else {
    fields_.emplace_back(*name, text);
  }
  return fields_.size() <= kFieldsMax;
}

// HAProxy sends null for a client of a Unix socket.
void Notify::ReadSource(const wire::SpopValue& value) {
  if (value.kind == wire::SpopValue::Kind::kIp) {
    request_.client = value.ip;
  } else if (value.kind == wire::SpopValue::Kind::kText) {
    request_.client = base::ParseIpAddress(value.text);
  }
  if (!request_.client) request_.client_statement = mapping::ClientStatement::kUnreadable;
}

// req.hdrs_bin: { name, value }, then two empty texts.
bool Notify::ReadHeaders(std::string_view bytes) {
  while (true) {
    const auto name = wire::TakeSpopText(bytes);
    if (!name) return false;
    const auto value = wire::TakeSpopText(bytes);
    if (!value) return false;
    if (name->empty()) return value->empty() && bytes.empty();
    if (fields_.size() == kFieldsMax) return false;
    fields_.emplace_back(*name, *value);
  }
}

}  // namespace headgate::front::spoe
