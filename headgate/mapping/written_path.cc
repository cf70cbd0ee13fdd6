#include "headgate/mapping/written_path.h"

#include "headgate/base/percent.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {
namespace {

constexpr std::string_view kPercent = "%25";

bool BeginsEscape(std::string_view text) { return base::PercentByte(text) >= 0; }

// Decodes all escapes, and normalizes the path.
std::optional<std::string> Normalized(std::string_view text) {
  // A request has both characters only as escapes.
  std::string target;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') {
      target += "%23";
    } else if (text[i] == '%' && !BeginsEscape(text.substr(i))) {
      target += kPercent;
    } else {
      target += text[i];
    }
  }
  std::string path;
  if (!wire::NormalizePath(target, path, {.parameters = wire::PathParameters::kKeep}))
    return std::nullopt;
  return path;
}

}  // namespace

std::optional<std::string> ReadPath(std::string_view text) {
  std::optional<std::string> path = Normalized(text);
  std::string unescaped;
  for (size_t i = 0; i < text.size(); ++i) {
    unescaped += text[i];
    if (text.substr(i).starts_with(kPercent)) i += kPercent.size() - 1;
  }
  // Everything else that is normalized makes the path shorter.
  return path == unescaped ? path : std::nullopt;
}

std::optional<std::string> SpellingOfPath(std::string_view text) {
  const std::optional<std::string> path = Normalized(text);
  if (!path) return std::nullopt;
  std::string spelling;
  for (size_t i = 0; i < path->size(); ++i) {
    if (BeginsEscape(std::string_view(*path).substr(i))) {
      spelling += kPercent;
    } else {
      spelling += (*path)[i];
    }
  }
  return spelling;
}

}  // namespace headgate::mapping
