#include "headgate/observe/rule_names.h"

#include <utility>

namespace headgate::observe {
namespace {

std::string TextOf(std::string_view domain, std::string_view label) {
  std::string text(domain);
  text += '\0';
  text += label;
  return text;
}

}  // namespace

uint32_t RuleNames::Add(std::string_view domain, std::string_view label) {
  const std::lock_guard lock(mutex_);
  std::string text = TextOf(domain, label);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  if (names_.size() > number_max_) return kOther;
  const auto number = static_cast<uint32_t>(names_.size());
  names_.push_back({.domain = std::string(domain), .rule = std::string(label)});
  numbers_.emplace(std::move(text), number);
  return number;
}

std::optional<uint32_t> RuleNames::Find(std::string_view domain, std::string_view label) const {
  const std::lock_guard lock(mutex_);
  const auto found = numbers_.find(TextOf(domain, label));
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

RuleNames::Name RuleNames::At(uint32_t number) const {
  const std::lock_guard lock(mutex_);
  return names_.at(number);
}

std::vector<RuleNames::Name> RuleNames::List() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

}  // namespace headgate::observe
