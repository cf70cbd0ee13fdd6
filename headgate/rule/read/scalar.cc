#include "headgate/rule/read/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "headgate/base/text.h"

namespace headgate::rule::read {
namespace {

constexpr std::array<std::string_view, 11> kTrue{"y",    "Y",    "yes", "Yes", "YES", "true",
                                                 "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse{"n",     "N",     "no",  "No",  "NO", "false",
                                                  "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNamedFloats{".nan",  ".NaN",  ".NAN",  ".inf",
                                                        ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                        "+.INF", "-.inf", "-.Inf", "-.INF"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& words, std::string_view text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Returns the base that the prefix of a number stands for, and removes the prefix. "0" alone is
// decimal, "010" is octal.
int TakeBase(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  const char letter = digits[1];
  const int base = letter == 'x' || letter == 'X'   ? 16
                   : letter == 'o' || letter == 'O' ? 8
                   : letter == 'b' || letter == 'B' ? 2
                                                    : 0;
  digits.remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

std::optional<Scalar> ParseInt(std::string_view digits) {
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  const int base = TakeBase(digits);
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  if (magnitude <= kLargest + (negative ? 1 : 0)) {
    const uint64_t value = negative ? uint64_t{0} - magnitude : magnitude;
    return Scalar{.type = ScalarType::kInt, .number = static_cast<int64_t>(value)};
  }
  if (negative) return std::nullopt;
  return Scalar{.type = ScalarType::kUnsigned, .magnitude = magnitude};
}

// [-+]? ( .digits | digits [. digits*] ) ( [eE] [-+]? digits )?
bool IsFloat(std::string_view text) {
  const auto take_digits = [&] {
    size_t count = 0;
    while (count < text.size() && base::IsDigit(text[count])) ++count;
    text.remove_prefix(count);
    return count;
  };
  const auto take_any = [&](std::string_view letters) {
    if (text.empty() || letters.find(text[0]) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
  };
  take_any("+-");
  size_t digits = take_digits();
  if (take_any(".")) {
    const size_t after = take_digits();
    if (digits == 0) digits = after;
  }
  if (digits == 0) return false;
  if (take_any("eE")) {
    take_any("+-");
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

Scalar ResolvePlain(std::string_view text) {
  if (Contains(kNull, text)) return {.type = ScalarType::kNull};
  if (Contains(kTrue, text)) return {.type = ScalarType::kBool, .truth = true};
  if (Contains(kFalse, text)) return {.type = ScalarType::kBool, .truth = false};
  if (Contains(kNamedFloats, text)) return {.type = ScalarType::kFloat};
  const char first = text[0];
  if (first == '.' && IsFloat(text)) return {.type = ScalarType::kFloat};
  if (!base::IsDigit(first) && first != '+' && first != '-') return {.type = ScalarType::kString};
  std::string plain(text);
  std::erase(plain, '_');
  if (const auto number = ParseInt(plain)) return *number;
  return {.type = IsFloat(plain) ? ScalarType::kFloat : ScalarType::kString};
}

bool BearsOut(Tag tag, ScalarType type) {
  switch (tag) {
    case Tag::kNull:
      return type == ScalarType::kNull;
    case Tag::kBool:
      return type == ScalarType::kBool;
    case Tag::kInt:
      return type == ScalarType::kInt || type == ScalarType::kUnsigned;
    case Tag::kFloat:
      return type == ScalarType::kFloat || type == ScalarType::kInt;
    default:
      return true;
  }
}

constexpr size_t kGoTextBytesMax = 64;

void AppendGoText(const DocumentNode& node, std::string& out) {
  if (out.size() > kGoTextBytesMax) return;
  if (node.kind == NodeKind::kScalar) {
    const Scalar scalar = Resolve(node);
    if (scalar.type == ScalarType::kNull) {
      out += "<nil>";
    } else if (scalar.type == ScalarType::kBool) {
      out += scalar.truth ? "true" : "false";
    } else if (scalar.type == ScalarType::kInt) {
      out += fmt::format("{}", scalar.number);
    } else {
      out += node.text.substr(0, kGoTextBytesMax);
    }
    return;
  }
  const bool is_map = node.kind == NodeKind::kMapping;
  out += is_map ? "map[" : "[";
  for (size_t i = 0; i < node.children.size() && out.size() <= kGoTextBytesMax; ++i) {
    if (i > 0) out += is_map && i % 2 == 1 ? ":" : " ";
    AppendGoText(*node.children[i], out);
  }
  out += "]";
}

}  // namespace

bool IsNull(const DocumentNode& node) {
  return node.kind == NodeKind::kScalar && Resolve(node).type == ScalarType::kNull;
}

Scalar Resolve(const DocumentNode& node) {
  if (node.tag == Tag::kString) return {};
  Scalar scalar = ResolvePlain(node.text);
  if (!BearsOut(node.tag, scalar.type)) return {.type = ScalarType::kMistagged};
  if (node.tag == Tag::kFloat) return {.type = ScalarType::kFloat};
  return scalar;
}

std::string_view TypeName(const DocumentNode& node) {
  if (node.kind == NodeKind::kSequence) return "!!seq";
  if (node.kind == NodeKind::kMapping) return "!!map";
  switch (Resolve(node).type) {
    case ScalarType::kNull:
      return "!!null";
    case ScalarType::kBool:
      return "!!bool";
    case ScalarType::kInt:
    case ScalarType::kUnsigned:
      return "!!int";
    case ScalarType::kFloat:
      return "!!float";
    default:
      return "!!str";
  }
}

std::string GoText(const DocumentNode& node) {
  std::string out;
  AppendGoText(node, out);
  return out;
}

}  // namespace headgate::rule::read
