// Rules by number. A rule that returns has its old number again, so the table only grows; its bound
// is the largest number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace headgate::observe {

// Thread-safe.
class RuleNames {
 public:
  struct Name {
    std::string domain;
    std::string rule;  // its label
  };
  // The number of all rules for which there is no room.
  static constexpr uint32_t kOther = 0;

  explicit RuleNames(uint32_t number_max) : number_max_(number_max) {}

  uint32_t Add(std::string_view domain, std::string_view label);
  // The number of a rule that has one of its own.
  std::optional<uint32_t> Find(std::string_view domain, std::string_view label) const;
  Name At(uint32_t number) const;
  // By number.
  std::vector<Name> List() const;

 private:
  const uint32_t number_max_;
  mutable std::mutex mutex_;
  std::vector<Name> names_{{.domain = "other", .rule = "other"}};
  absl::flat_hash_map<std::string, uint32_t> numbers_;  // by domain + NUL + label
};

}  // namespace headgate::observe
