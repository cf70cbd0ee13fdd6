// The meaning of a YAML scalar: YAML 1.1 as Envoy's rate limit service reads it (go-yaml v2). `yes`
// is true, `010` is 8 and `1_000` is a thousand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/rule/read/document.h"

namespace headgate::rule::read {

enum class ScalarType : uint8_t {
  kString,
  kNull,
  kBool,
  kInt,       // fits into int64_t
  kUnsigned,  // too large for int64_t, but fits into uint64_t
  kFloat,
  kMistagged,  // an explicit tag that does not fit the text
};

struct Scalar {
  ScalarType type = ScalarType::kString;
  bool truth = false;      // kBool
  int64_t number = 0;      // kInt
  uint64_t magnitude = 0;  // kUnsigned
};

// `node` must be a scalar.
Scalar Resolve(const DocumentNode& node);

// Whether `node` is a scalar without a value: empty, `~` or `null`.
bool IsNull(const DocumentNode& node);

// The name of a node's type in messages: "!!str", "!!int", "!!map", …
std::string_view TypeName(const DocumentNode& node);

// A node as Go prints it: text, a decimal number, "true", "<nil>", "[a b]", "map[a:1]"; cut after
// about 64 bytes.
std::string GoText(const DocumentNode& node);

}  // namespace headgate::rule::read
