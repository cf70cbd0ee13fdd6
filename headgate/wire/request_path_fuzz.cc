// A normalized path stays the same when it is escaped and normalized again, and contains nothing
// that a reader could resolve differently. A merged path is the normalized one with escapes.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/base/percent.h"
#include "headgate/base/text.h"
#include "headgate/wire/request_path.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view path(static_cast<const char*>(static_cast<const void*>(data)), size);
  constexpr headgate::wire::PathOptions kKeep = {.parameters =
                                                     headgate::wire::PathParameters::kKeep};
  std::string once = "prefix";
  if (!headgate::wire::NormalizePath(path, once, kKeep)) return 0;
  once.erase(0, 6);
  HEADGATE_CHECK(once.starts_with('/') && once.find("//") == once.npos);
  std::string escaped;
  for (const char c : once) {
    HEADGATE_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '\\');
    if (c == '/' || headgate::base::IsLetterOrDigit(c) || c == '.') {
      escaped.push_back(c);
    } else {
      escaped.push_back('%');
      headgate::base::AppendHex(static_cast<uint8_t>(c), escaped);
    }
  }
  for (std::string_view rest = once; !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view segment = rest.substr(0, rest.find('/'));
    HEADGATE_CHECK(segment != "." && segment != "..");
    rest.remove_prefix(segment.size());
  }
  std::string again;
  HEADGATE_CHECK(headgate::wire::NormalizePath(escaped, again, kKeep) && again == once);

  // The merged path, decoded without any further change, is the normalized one.
  std::string merged;
  headgate::wire::AppendMergedPath(path, merged);
  std::string decoded;
  for (std::string_view rest = merged; !rest.empty();) {
    const int byte = headgate::base::PercentByte(rest);
    decoded.push_back(byte < 0 ? rest.front() : static_cast<char>(byte));
    rest.remove_prefix(byte < 0 ? 1 : 3);
  }
  HEADGATE_CHECK(decoded == once);
  return 0;
}
