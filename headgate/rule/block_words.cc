#include "headgate/rule/block_words.h"

#include <fmt/format.h>

#include "headgate/rule/duration.h"

namespace headgate::rule {

using algorithm::BlockLengths;

absl::StatusOr<BlockLengths> ParseBlock(std::span<const std::string_view> lengths) {
  if (lengths.empty()) return absl::InvalidArgumentError("the list is empty");
  if (lengths.size() > BlockLengths::kMost) {
    return absl::InvalidArgumentError(
        fmt::format("{} lengths, more than {}", lengths.size(), BlockLengths::kMost));
  }
  BlockLengths block;
  base::Duration last{0};
  for (const std::string_view text : lengths) {
    HEADGATE_ASSIGN_OR_RETURN(const base::Duration length, ParseDuration(text));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length);
    if (seconds != length || seconds < std::chrono::seconds(1) ||
        seconds > BlockLengths::kLongest) {
      return absl::InvalidArgumentError(
          fmt::format("a block lasts whole seconds, from 1s to 365d, not {}", text));
    }
    if (length < last) {
      return absl::InvalidArgumentError(
          fmt::format("{} is shorter than the block before it", text));
    }
    last = length;
    block.Add(std::chrono::duration_cast<BlockLengths::Seconds>(seconds));
  }
  return block;
}

std::string Describe(const BlockLengths& lengths) {
  std::string out;
  for (size_t level = 0; level < lengths.size(); ++level)
    out += (level > 0 ? ", " : "") + FormatDuration(lengths.at(level));
  return lengths.size() > 1 ? "[" + out + "]" : out;
}

}  // namespace headgate::rule
