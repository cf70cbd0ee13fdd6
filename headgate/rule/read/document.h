// YAML text as a light tree: every scalar as written, with its line and column. scalar.h interprets
// the scalars, because `value: 010` in a rule file is the text "010" but `requests_per_unit: 010`
// is 8.
//
// A text must have one document. Envoy's rate limit service silently ignores all others; here they
// are an error, because their author meant them to count. As in that service, aliases share the
// nodes of their anchor, and merge keys (`<<`) are expanded in place. If a key occurs twice, both
// pairs are kept, in order. The input is untrusted, so everything is bounded. Syntax errors have
// libyaml's wording, as in Envoy's rate limit service.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/rule/mark.h"

namespace headgate::rule::read {

inline constexpr size_t kDocumentBytesMax = size_t{64} << 20;
inline constexpr uint32_t kDocumentDepthMax = 100;
// Counted after the expansion of aliases; every 32 bytes of a text count as one more node. A rule
// with one limit has about 11 nodes.
inline constexpr uint32_t kDocumentNodesMax = 4'000'000;

enum class NodeKind : uint8_t { kScalar, kSequence, kMapping };

// An explicit `!!tag` of a scalar. Any other tag makes the scalar a string.
enum class Tag : uint8_t { kNone, kString, kNull, kBool, kInt, kFloat };

struct DocumentNode {
  NodeKind kind = NodeKind::kScalar;
  Tag tag = Tag::kNone;  // kString for a quoted scalar
  Mark mark;
  std::string_view text;  // scalars only: as written
  // Items; for a mapping, keys and values alternating.
  std::span<const DocumentNode* const> children{};
  uint32_t size = 1;    // number of nodes here and below, with aliases expanded
  uint32_t height = 1;  // length of the longest path down, including this node
};

class Document {
 public:
  struct Error {
    Mark mark;
    std::string message;
    std::string hint;  // what to write instead
  };
  struct Parsed;

  // Copies the parts of `text` that it needs.
  static Parsed Parse(std::string_view text);

  // Null if the document is empty.
  const DocumentNode* root() const { return root_; }

 private:
  friend class DocumentParser;
  std::pmr::monotonic_buffer_resource memory_;
  const DocumentNode* root_ = nullptr;
};

struct Document::Parsed {
  std::unique_ptr<const Document> document;  // null on error
  std::optional<Error> error;
};

}  // namespace headgate::rule::read
