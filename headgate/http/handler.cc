#include "headgate/http/handler.h"

#include "headgate/base/check.h"

namespace headgate::http {
bool HasBody(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

bool IsMediaType(std::string_view value, std::string_view media_type) {
  value = value.substr(0, value.find(';'));
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  return EqualsIgnoreCase(value, media_type);
}

std::string_view Request::Field(std::string_view name) const {
  for (const auto& [field_name, value] : fields) {
    if (EqualsIgnoreCase(field_name, name)) return value;
  }
  return {};
}

void Response::AddField(std::string_view name, std::string_view value) {
  for (const char end : {'\r', '\n', '\0'}) HEADGATE_CHECK(value.find(end) == value.npos);
  fields.Add(name, value);
}

void Response::Clear() {
  status = 200;
  fields.Clear();
  body.clear();
  stream.reset();
  later = false;
  held_until.reset();
  trailers.Clear();
  closes = false;
}

}  // namespace headgate::http
