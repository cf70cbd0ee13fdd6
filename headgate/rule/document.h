// YAML text as a light tree: every scalar as it was written, with its line and column. scalar.h
// says what a scalar means, because a rule file's `value: 010` is the text "010" and its
// `requests_per_unit: 010` is 8.
//
// Only the first document is read. Aliases share their anchor's nodes, merge keys (`<<`) are
// expanded in place, both as Envoy's rate limit service has it; of a doubled key both pairs are
// kept, in order. Foreign bytes: everything is bounded. Syntax errors have the words of libyaml,
// which are those of Envoy's rate limit service too.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headgate::rule {

inline constexpr size_t kDocumentBytesMax = size_t{64} << 20;
inline constexpr uint32_t kDocumentDepthMax = 100;
// After the expansion of aliases; a text counts once more for every 32 bytes. A rule of one limit
// has some 11.
inline constexpr uint32_t kDocumentNodesMax = 4'000'000;

// A place in a text; both count from 1, columns in characters.
struct Mark {
  uint32_t line = 1;
  uint32_t column = 1;
};

enum class NodeKind : uint8_t { kScalar, kSequence, kMapping };

// An explicit `!!tag` of a scalar; everything that is neither of these makes it a string.
enum class Tag : uint8_t { kNone, kString, kNull, kBool, kInt, kFloat };

struct DocumentNode {
  NodeKind kind = NodeKind::kScalar;
  Tag tag = Tag::kNone;  // kString for a quoted scalar
  Mark mark;
  std::string_view text;                            // of a scalar, raw
  std::span<const DocumentNode* const> children{};  // items; of a mapping keys and values by turns
  uint32_t size = 1;    // nodes under this one and itself, aliases expanded
  uint32_t height = 1;  // the longest way down, itself included
};

class Document {
 public:
  struct Error {
    Mark mark;
    std::string message;
  };
  struct Parsed;

  // Copies what it needs of `text`.
  static Parsed Parse(std::string_view text);

  // Null where the document is empty.
  const DocumentNode* root() const { return root_; }

 private:
  friend class DocumentParser;
  std::pmr::monotonic_buffer_resource memory_;
  const DocumentNode* root_ = nullptr;
};

struct Document::Parsed {
  std::unique_ptr<const Document> document;  // null where there is an error
  std::optional<Error> error;
};

}  // namespace headgate::rule
