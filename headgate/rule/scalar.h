// The meaning of a YAML scalar: YAML 1.1 as Envoy's rate limit service reads it (go-yaml v2), where
// `yes` is true, `010` is 8 and `1_000` is a thousand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/rule/document.h"

namespace headgate::rule {

enum class ScalarType : uint8_t {
  kString,
  kNull,
  kBool,
  kInt,       // fits 64 bits with a sign
  kUnsigned,  // too large for that, but fits 64 bits without
  kFloat,
  kMistagged,  // an explicit tag that its text does not bear out
};

struct Scalar {
  ScalarType type = ScalarType::kString;
  bool truth = false;      // kBool
  int64_t number = 0;      // kInt
  uint64_t magnitude = 0;  // kUnsigned
};

// `node` is a scalar.
Scalar Resolve(const DocumentNode& node);

// "!!str", "!!int", "!!map", …: what messages call the type of a node.
std::string_view TypeName(const DocumentNode& node);

// A node as Go prints it: text, a number in decimals, "true", "<nil>", "[a b]", "map[a:1]"; cut
// after some 64 bytes.
std::string GoText(const DocumentNode& node);

}  // namespace headgate::rule
