#include "headgate/rule/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "headgate/base/digits.h"
#include "headgate/base/json.h"
#include "headgate/base/text.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

constexpr std::string_view kOpen = "${";

// The characters of a token (RFC 9110, 5.6.2).
bool IsTokenText(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return base::IsLetter(c) || base::IsDigit(c) || kOthers.find(c) != kOthers.npos;
  });
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string_view TypeOf(std::string_view content_type) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  return type.substr(0, type.find_last_not_of(' ') + 1);
}

absl::Status CheckContentType(std::string_view content_type) {
  const std::string_view type = TypeOf(content_type);
  const size_t slash = std::min(type.find('/'), type.size());
  const bool valid = IsTokenText(type.substr(0, slash)) && slash < type.size() &&
                     IsTokenText(type.substr(slash + 1)) && IsVisible(content_type);
  if (valid && content_type.size() <= kContentTypeBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      valid ? fmt::format("content_type is longer than {} bytes", kContentTypeBytesMax)
            : fmt::format("content_type {} is not a media type, such as text/plain or "
                          "application/problem+json",
                          Quote(content_type)));
}

void AppendMarkup(std::string_view text, std::string& out) {
  for (const char c : text) {
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&quot;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        out.push_back(c);
    }
  }
}

void AppendInJsonString(std::string_view text, std::string& out) {
  const size_t begin = out.size();
  base::AppendJsonString(text, out);
  out.pop_back();
  out.erase(begin, 1);
}

}  // namespace

absl::StatusOr<Refusal> Refusal::Make(std::string_view content_type, std::string_view body) {
  HEADGATE_RETURN_IF_ERROR(CheckContentType(content_type));
  if (body.size() > kRefusalBodyBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("body has {} bytes; it may have {}", body.size(), kRefusalBodyBytesMax));
  }
  Refusal refusal;
  refusal.content_type_ = content_type;
  refusal.body_ = body;
  refusal.escape_ = EscapeOf(content_type);
  HEADGATE_RETURN_IF_ERROR(refusal.ReadParts());
  return refusal;
}

Refusal::Escape Refusal::EscapeOf(std::string_view content_type) {
  std::string type(TypeOf(content_type));
  std::transform(type.begin(), type.end(), type.begin(), base::ToLower);
  if (type == "application/json" || type.ends_with("+json")) return Escape::kJson;
  if (type == "text/html" || type.ends_with("/xml") || type.ends_with("+xml"))
    return Escape::kMarkup;
  return Escape::kNone;
}

absl::Status Refusal::ReadParts() {
  constexpr std::array<std::pair<std::string_view, Value>, 3> kValues = {
      {{"limit", Value::kLimit}, {"seconds", Value::kSeconds}, {"rule", Value::kRule}}};
  std::string_view rest = body_;
  std::string text;
  const auto end_text = [&] {
    if (!text.empty()) parts_.push_back({.text = std::exchange(text, {})});
  };
  while (true) {
    const size_t open = rest.find(kOpen);
    if (open == rest.npos) break;
    const bool is_escaped = open > 0 && rest[open - 1] == '$';
    text.append(rest.substr(0, is_escaped ? open - 1 : open));
    rest.remove_prefix(open + kOpen.size());
    if (is_escaped) {
      text.append(kOpen);
      continue;
    }
    const size_t close = rest.find('}');
    if (close == rest.npos) {
      return absl::InvalidArgumentError(
          fmt::format("body has a '${{' without a '}}', before {}", Quote(rest)));
    }
    const std::string_view name = rest.substr(0, close);
    const auto known = std::find_if(kValues.begin(), kValues.end(),
                                    [&](const auto& value) { return value.first == name; });
    if (known == kValues.end())
      return absl::InvalidArgumentError(
          fmt::format("body has an unknown placeholder {}", Quote(name)));
    end_text();
    parts_.push_back({.value = known->second});
    rest.remove_prefix(close + 1);
  }
  text.append(rest);
  end_text();
  return absl::OkStatus();
}

void Refusal::AppendBody(const Refused& refused, std::string& out) const {
  for (const Part& part : parts_) {
    switch (part.value) {
      case Value::kText:
        out.append(part.text);
        break;
      case Value::kLimit:
        base::AppendNumber(refused.limit, out);
        break;
      case Value::kSeconds:
        if (refused.seconds) {
          base::AppendNumber(*refused.seconds, out);
        } else if (escape_ == Escape::kJson) {
          out.append("null");
        }
        break;
      case Value::kRule:
        if (escape_ == Escape::kJson) {
          AppendInJsonString(refused.rule, out);
        } else if (escape_ == Escape::kMarkup) {
          AppendMarkup(refused.rule, out);
        } else {
          out.append(refused.rule);
        }
        break;
    }
  }
}

}  // namespace headgate::rule
