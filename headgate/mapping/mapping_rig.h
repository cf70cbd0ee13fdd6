// Mappings from text, and requests, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/mapping/mapping_file.h"

namespace headgate::mapping {

using Files = std::map<std::string, std::string>;

inline LoadedMappings Load(std::string_view text, const Files& files = {}) {
  return LoadMappings("auth.yaml", text,
                      [&](const std::string& name) -> absl::StatusOr<std::string> {
                        const auto found = files.find(name);
                        if (found == files.end())
                          return absl::NotFoundError("no such file: " + name);
                        return found->second;
                      });
}

// Mappings that must be valid.
inline std::shared_ptr<const MappingSet> Valid(std::string_view text, const Files& files = {}) {
  LoadedMappings loaded = Load(text, files);
  for (const rule::Problem& problem : loaded.problems) ADD_FAILURE() << Describe(problem);
  HEADGATE_CHECK(loaded.set != nullptr);
  return loaded.set;
}

inline base::IpAddress Ip(std::string_view text) { return *base::ParseIpAddress(text); }

// Maps requests, and describes the result: "api_key=k1,path=/a x3; remote_address=1.2.3.4",
// "missing api_key", "exempt", …
struct MappingRig {
  explicit MappingRig(std::shared_ptr<const MappingSet> mappings) : set(std::move(mappings)) {
    mapper.Use(*set);
  }
  explicit MappingRig(std::string_view text, const Files& files = {})
      : MappingRig(Valid(text, files)) {}

  std::string Map(const DescribedRequest& request, int64_t now_s = 0) {
    const MappedRequest mapped = mapper.Map(request, now_s);
    switch (mapped.as) {
      case MappedAs::kUnmatched:
        return "unmatched";
      case MappedAs::kExempt:
        return "exempt";
      case MappedAs::kPreflight:
        return "preflight";
      case MappedAs::kRefused:
        return "refused";
      case MappedAs::kMissing:
        return "missing " + std::string(mapped.attribute);
      case MappedAs::kInvalid:
        return "invalid " + std::string(mapped.attribute);
      case MappedAs::kDescriptors:
        break;
    }
    std::string text;
    for (const rule::Descriptor& descriptor : mapped.descriptors) {
      if (!text.empty()) text += "; ";
      for (const rule::Entry& entry : descriptor.entries) {
        if (&entry != &descriptor.entries.front()) text += ",";
        text.append(entry.key).append("=").append(entry.value);
      }
      if (descriptor.cost.value_or(1) != 1) text += " x" + std::to_string(*descriptor.cost);
    }
    return text;
  }

  std::shared_ptr<const MappingSet> set;
  Mapper mapper;
};

}  // namespace headgate::mapping
