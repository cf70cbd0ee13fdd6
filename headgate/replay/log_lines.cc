#include "headgate/replay/log_lines.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "headgate/replay/access_log.h"

namespace headgate::replay {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of a file in UTF-8 from Windows

// The program that unpacks a file with this beginning; empty if it is not compressed.
std::string_view UnpackerOf(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b")) return "zcat";
  if (beginning.starts_with("\x28\xb5\x2f\xfd")) return "zstdcat";
  if (beginning.starts_with("\xfd\x37zXZ")) return "xzcat";
  // The third byte is the size of the blocks.
  return beginning.starts_with("BZh") && beginning.substr(4).starts_with("1AY&SY") ? "bzcat" : "";
}

}  // namespace

std::string_view ForEachLine(std::istream& in, absl::FunctionRef<void(std::string_view)> take) {
  std::vector<char> block(kBlockBytes);
  std::string line;
  bool is_first = true;
  std::string_view unpacker;
  const auto pass = [&] {
    std::string_view text = line;
    if (std::exchange(is_first, false)) {
      unpacker = UnpackerOf(text);
      if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    }
    if (unpacker.empty()) take(text);
    line.clear();
  };
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    std::string_view rest(block.data(), static_cast<size_t>(in.gcount()));
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (line.size() <= kLogLineBytesMax) line.append(rest.substr(0, end));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
      pass();
      if (!unpacker.empty()) return unpacker;
    }
  }
  if (!line.empty()) pass();
  return unpacker;
}

}  // namespace headgate::replay
