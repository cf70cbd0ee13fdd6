#include "headgate/rule/read/key_limit_members.h"

#include <fmt/format.h>

#include <algorithm>

namespace headgate::rule::read {

bool IsOfLimit(KeyWord word) {
  switch (word) {
    case KeyWord::kAlgorithm:
    case KeyWord::kAlign:
    case KeyWord::kBlock:
    case KeyWord::kBurst:
    case KeyWord::kCountDenied:
    case KeyWord::kLimit:
    case KeyWord::kMaxDelay:
    case KeyWord::kOverdraw:
    case KeyWord::kQueue:
    case KeyWord::kTimezone:
    case KeyWord::kTtl:
    case KeyWord::kWindow:
    case KeyWord::kWindowSeconds:
      return true;
    default:
      return false;
  }
}

KeyLimitMembers::KeyLimitMembers(const DocumentNode& object, ProblemList& problems)
    : mark_(object.mark), problems_(problems) {
  for (size_t i = 0; i + 1 < object.children.size(); i += 2)
    Add(*object.children[i], *object.children[i + 1]);
}

void KeyLimitMembers::Report(Mark mark, std::string message, std::string hint) {
  good_ = false;
  problems_.Add(mark, std::move(message), std::move(hint));
}

void KeyLimitMembers::Report(KeyWord word, std::string message, std::string hint) {
  Report(has(word) ? value(word)->mark : mark_, std::move(message), std::move(hint));
}

std::optional<uint64_t> KeyLimitMembers::WholeNumber(KeyWord word) {
  if (!has(word)) return std::nullopt;
  // Not 010, 0x10 or 1_0, which YAML would read as other numbers than people do.
  const Scalar scalar = ScalarOf(word);
  if (scalar.type == ScalarType::kInt && value(word)->text == fmt::to_string(scalar.number) &&
      scalar.number >= 0)
    return static_cast<uint64_t>(scalar.number);
  Report(word, fmt::format("{} is not a whole number from 0 on", TextOf(word)),
         word == KeyWord::kWindowSeconds
             ? R"(other lengths go into Window: "Window": "500ms")"
             : fmt::format(R"(write a number: "{}": 10)", TextOf(word)));
  return std::nullopt;
}

bool KeyLimitMembers::Truth(KeyWord word) {
  if (!has(word)) return false;
  if (const Scalar scalar = ScalarOf(word); scalar.type == ScalarType::kBool) return scalar.truth;
  Report(word, fmt::format("{} is neither true nor false", TextOf(word)), "write true or false");
  return false;
}

std::string_view KeyLimitMembers::Text(KeyWord word) {
  if (!has(word)) return {};
  const DocumentNode& node = *value(word);
  if (node.kind == NodeKind::kScalar && node.tag == Tag::kString && !node.text.empty())
    return node.text;
  Report(word, fmt::format("{} is not a text", TextOf(word)), "write it in double quotes");
  return {};
}

Scalar KeyLimitMembers::ScalarOf(KeyWord word) const {
  const DocumentNode& node = *value(word);
  return node.kind == NodeKind::kScalar ? Resolve(node) : Scalar{};
}

void KeyLimitMembers::ReportInvalid(KeyWord word, std::string hint) {
  Report(word, fmt::format("invalid {} '{}'", TextOf(word), Shown(value(word)->text)),
         std::move(hint));
}

void KeyLimitMembers::Add(const DocumentNode& name, const DocumentNode& member) {
  const auto found = std::find(kKeyWords.begin(), kKeyWords.end(), name.text);
  if (found == kKeyWords.end()) {
    std::string hint = DidYouMean(name.text, {kKeyWords.begin(), kKeyWords.end()});
    if (hint.empty()) hint = kKeyLimitForm;
    return Report(name.mark, fmt::format("unknown word '{}'", Shown(name.text)), std::move(hint));
  }
  const DocumentNode*& kept = values_[static_cast<size_t>(found - kKeyWords.begin())];
  if (kept != nullptr)
    Report(name.mark, fmt::format("{} is there twice", *found), "leave out one of them");
  kept = &member;
}

}  // namespace headgate::rule::read
