#include "headgate/rule/read/refusal_reader.h"

#include <utility>

#include <fmt/format.h>

namespace headgate::rule::read {
namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kRefusalForm =
    "refusal: {content_type: application/json, body: '{\"retry_after\":${seconds}}'}";

}  // namespace

std::shared_ptr<const Refusal> ReadRefusal(const DocumentNode& node, ProblemList& problems) {
  const auto refuse = [&](Mark mark, std::string message, std::string hint) {
    problems.Add(mark, std::move(message), std::move(hint));
    return nullptr;
  };
  if (node.kind != NodeKind::kMapping)
    return refuse(node.mark, "refusal is not a mapping", std::string(kRefusalForm));
  const DocumentNode* type = nullptr;
  const DocumentNode* body = nullptr;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const DocumentNode& key = *node.children[i];
    const DocumentNode& value = *node.children[i + 1];
    const bool is_type = key.text == "content_type";
    if (!is_type && key.text != "body") {
      std::string hint = DidYouMean(key.text, {"content_type", "body"});
      if (hint.empty()) hint = "a refusal has content_type and body";
      return refuse(key.mark, fmt::format("a refusal has no word '{}'", Shown(key.text)),
                    std::move(hint));
    }
    const DocumentNode*& place = is_type ? type : body;
    if (place != nullptr) {
      return refuse(key.mark, fmt::format("{} comes twice in a refusal", key.text),
                    "leave out one of them");
    }
    if (value.kind != NodeKind::kScalar) {
      return refuse(value.mark, fmt::format("{} is not a text", key.text),
                    "write JSON in single quotes, or on lines of its own behind \"body: |\"");
    }
    place = &value;
  }
  if (body == nullptr) return refuse(node.mark, "a refusal has no body", std::string(kRefusalForm));
  auto refusal = Refusal::Make(type == nullptr ? kPlainText : type->text, body->text);
  if (refusal.ok()) return std::make_shared<const Refusal>(*std::move(refusal));
  const std::string message(refusal.status().message());
  const bool of_type = type != nullptr && message.starts_with("content_type");
  return refuse(of_type ? type->mark : body->mark, message,
                of_type ? "write the value of the field Content-Type"
                        : "the placeholders are ${limit}, ${seconds} and ${rule}; $${ stands for "
                          "${ itself");
}

LoadedRefusal LoadRefusal(const std::string& name, std::string_view text) {
  ProblemList problems(name);
  LoadedRefusal loaded;
  const Document::Parsed parsed = Document::Parse(text);
  if (parsed.error) {
    problems.Add(parsed.error->mark, parsed.error->message, parsed.error->hint);
  } else if (parsed.document->root() == nullptr) {
    problems.Add({}, "the file is empty", "write content_type and body");
  } else {
    loaded.refusal = ReadRefusal(*parsed.document->root(), problems);
  }
  loaded.problems = std::move(problems).Take();
  return loaded;
}

}  // namespace headgate::rule::read
