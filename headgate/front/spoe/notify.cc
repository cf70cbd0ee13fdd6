#include "headgate/front/spoe/notify.h"

#include "headgate/wire/spop.h"

namespace headgate::front::spoe {
namespace {

// More than a frame of 16 KiB, as HAProxy sends it, has room for.
constexpr size_t kFieldsMax = 1000;

}  // namespace

NotifyContent Notify::Read(std::string_view payload) {
  if (!ReadMessage(payload)) return NotifyContent::kMalformed;
  const bool several = !payload.empty();
  while (!payload.empty()) {
    if (!ReadMessage(payload)) return NotifyContent::kMalformed;
  }
  if (several) return NotifyContent::kSeveralMessages;
  target_.assign(path_);
  if (!query_.empty()) target_.append("?").append(query_);
  request_.target = target_;
  request_.fields = fields_;
  return NotifyContent::kRequest;
}

bool Notify::ReadMessage(std::string_view& bytes) {
  request_ = {};
  fields_.clear();
  path_ = query_ = {};
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
  if (value->kind == Kind::kIp && *name == "src") {
    request_.client = value->ip;
    return true;
  }
  // HAProxy sends null for what the request does not have.
  if (value->kind == Kind::kNull) return true;
  if (value->kind != Kind::kText) return false;
  if (*name == "method") {
    request_.method = value->text;
  } else if (*name == "path") {
    path_ = value->text;
  } else if (*name == "query") {
    query_ = value->text;
  } else if (*name == "host") {
    request_.host = value->text;
  } else if (*name == "headers") {
    return ReadHeaders(value->text);
  } else {
    fields_.emplace_back(*name, value->text);
  }
  return fields_.size() <= kFieldsMax;
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
