#include "headgate/app/settings/entries.h"

#include <fmt/format.h>

namespace headgate::app {
namespace {

class EntryReader {
 public:
  explicit EntryReader(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<NamedValue>> Read() {
    std::vector<NamedValue> values;
    do {
      if (values.size() == rule::kEntriesMax)
        return Bad(fmt::format("there are more than {} entries", rule::kEntriesMax));
      NamedValue entry;
      HEADGATE_ASSIGN_OR_RETURN(entry.key, Word(",="));
      if (entry.key.empty()) return Bad("a key is missing");
      if (!Skip('=')) return Bad(fmt::format("'=' is missing after '{}'", entry.key));
      HEADGATE_ASSIGN_OR_RETURN(entry.value, Word(","));
      values.push_back(std::move(entry));
    } while (Skip(','));
    if (at_ != text_.size()) return Bad("text follows a closing quote");
    return values;
  }

 private:
  bool Skip(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Up to one of `ends`, or between quotes.
  absl::StatusOr<std::string> Word(std::string_view ends) {
    if (!Skip('"')) {
      const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
      const std::string_view word = text_.substr(at_, end - at_);
      if (word.find('"') != std::string_view::npos)
        return Bad("there is a quote in the middle of a word");
      at_ = end;
      return std::string(word);
    }
    std::string word;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_++];
    }
    if (!Skip('"')) return Bad("the closing quote is missing");
    return word;
  }

  absl::Status Bad(std::string_view why) const {
    return absl::InvalidArgumentError(
        fmt::format("descriptor '{}', at character {}: {}", text_, at_ + 1, why));
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<NamedValue>> ParseEntries(std::string_view text) {
  return EntryReader(text).Read();
}

absl::StatusOr<DescriptorArguments> ParseDescriptorArguments(
    const std::optional<std::string>& domain, std::span<const std::string> words) {
  DescriptorArguments descriptors{.domain = domain.value_or(std::string(rule::kDefaultDomain)),
                                  .descriptors = {}};
  if (!words.empty() && words.front().find('=') == std::string::npos) {
    if (domain) {
      return absl::InvalidArgumentError(fmt::format(
          "two domains are given: --domain {} and '{}', which has no '='", *domain, words.front()));
    }
    descriptors.domain = words.front();
    words = words.subspan(1);
  }
  if (words.empty()) return absl::InvalidArgumentError("a descriptor is missing");
  for (const std::string& word : words) {
    HEADGATE_ASSIGN_OR_RETURN(std::vector<NamedValue> entries, ParseEntries(word));
    descriptors.descriptors.push_back(std::move(entries));
  }
  return descriptors;
}

std::vector<rule::Entry> EntriesOf(const std::vector<NamedValue>& values) {
  std::vector<rule::Entry> entries;
  for (const NamedValue& value : values)
    entries.push_back({.key = value.key, .value = value.value});
  return entries;
}

}  // namespace headgate::app
