// Edits any document at any path with any rule. Each edit is refused, or its result has the rule
// that was asked for. The input is "PATH\nRULE\0DOCUMENT"; the path is "key=value,key,…".
#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/rule/edit/rule_edit.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/load.h"

namespace {

using namespace headgate::rule;
using namespace headgate::rule::edit;
using namespace headgate::rule::read;

std::string_view TakeUntil(std::string_view& text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

std::vector<RuleEntry> PathOf(std::string_view text) {
  std::vector<RuleEntry> path;
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, ',');
    RuleEntry entry{.key = std::string(TakeUntil(value, '='))};
    if (!value.empty()) entry.value = value;
    path.push_back(std::move(entry));
  }
  return path;
}

bool Loads(const std::string& text) {
  const std::vector<RuleFile> files{{.name = "f", .text = text}};
  return LoadRules(files).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(static_cast<const char*>(static_cast<const void*>(data)), size);
  const std::vector<RuleEntry> path = PathOf(TakeUntil(input, '\n'));
  const std::string_view rule = TakeUntil(input, '\0');
  const std::string document(input);

  const auto put = PutRule(document, path, rule);
  if (put.ok()) {
    HEADGATE_CHECK(!Document::Parse(*put).error);
    HEADGATE_CHECK(RuleText(*put, path).ok());
    const auto again = PutRule(*put, path, rule);
    HEADGATE_CHECK(again.ok() && *again == *put);
  } else {
    HEADGATE_CHECK(!put.status().message().empty());
  }
  const auto removed = RemoveRule(document, path);
  // If a document loads, it also loads without the rule.
  if (removed.ok() && Loads(document)) HEADGATE_CHECK(Loads(*removed));
  (void)RuleText(document, path);
  return 0;
}
