#include "headgate/rule/read/block_reader.h"

#include <string_view>
#include <vector>

#include "headgate/rule/block_words.h"

namespace headgate::rule::read {

absl::StatusOr<algorithm::BlockLengths> ParseBlock(const DocumentNode& value) {
  const auto not_a_length = absl::InvalidArgumentError("neither a duration nor a list of them");
  std::vector<std::string_view> lengths;
  if (value.kind == NodeKind::kScalar) {
    lengths.push_back(value.text);
  } else if (value.kind == NodeKind::kSequence) {
    for (const DocumentNode* item : value.children) {
      if (item->kind != NodeKind::kScalar) return not_a_length;
      lengths.push_back(item->text);
    }
  } else {
    return not_a_length;
  }
  return rule::ParseBlock(lengths);
}

}  // namespace headgate::rule::read
