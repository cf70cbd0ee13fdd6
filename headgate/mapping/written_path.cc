#include "headgate/mapping/written_path.h"

#include "headgate/wire/percent.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {

std::optional<std::string> WrittenPath(std::string_view text) {
  // A request has both characters only as escapes.
  std::string target;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') {
      target += "%23";
    } else if (text[i] == '%' && wire::PercentByte(text.substr(i)) < 0) {
      target += "%25";
    } else {
      target += text[i];
    }
  }
  std::string path;
  if (!wire::NormalizePath(target, path)) return std::nullopt;
  return path;
}

}  // namespace headgate::mapping
