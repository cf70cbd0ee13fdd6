#include "headgate/mapping/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headgate/mapping/host_pattern.h"

namespace headgate::mapping {
namespace {

using Problem = AttributeProblem;

MappedRequest ProblemWith(const Mapping& mapping, Problem problem, std::string_view attribute,
                          const Attribute* source) {
  return {.as = problem == Problem::kInvalid ? MappedAs::kInvalid : MappedAs::kMissing,
          .mapping = &mapping,
          .descriptors = {},
          .attribute = attribute,
          .source = source};
}

}  // namespace

void Mapper::Use(const MappingSet& set) {
  set_ = &set;
  tokens_.SetIssuers(set.issuers);
}

MappedRequest Mapper::Map(const RequestHead& request, int64_t now_s) {
  attributes_.Begin(request, set_->attributes, tokens_, now_s);
  texts_used_ = 0;
  MappedRequest mapped = MapByFirst();
  mapped.has_read_path = attributes_.has_read_path();
  return mapped;
}

MappedRequest Mapper::MapByFirst() {
  for (const Mapping& mapping : set_->mappings) {
    Problem problem = Problem::kNone;
    if (Fits(mapping, problem)) return MapBy(mapping);
    // A path that cannot be judged must not slip past the mapping that it might belong to.
    if (problem != Problem::kNone)
      return ProblemWith(mapping, problem, "the original request", nullptr);
  }
  return {};
}

bool Mapper::Fits(const Mapping& mapping, Problem& problem) {
  if (!mapping.paths.empty()) {
    std::string_view path;
    problem = attributes_.Path(path);
    if (problem != Problem::kNone || std::none_of(mapping.paths.begin(), mapping.paths.end(),
                                                  [&](const auto& p) { return p.Matches(path); })) {
      return false;
    }
  }
  if (!mapping.hosts.empty()) {
    std::string_view host;
    problem = attributes_.Host(host);
    if (problem != Problem::kNone ||
        std::none_of(mapping.hosts.begin(), mapping.hosts.end(),
                     [&](const std::string& h) { return HostMatches(h, host); })) {
      return false;
    }
  }
  if (mapping.methods.empty()) return true;
  std::string_view method;
  problem = attributes_.Method(method);
  return problem == Problem::kNone &&
         std::find(mapping.methods.begin(), mapping.methods.end(), method) != mapping.methods.end();
}

// A missing attribute is in no list. But a client whose address nobody states must not slip past a
// list that refuses addresses, nor a client that spoils its token past one that refuses claims.
bool Mapper::IsInAny(std::span<const AttributeList> lists, MappedAs as, Problem& problem,
                     const Attribute*& attribute) {
  for (const AttributeList& list : lists) {
    attribute = &list.attribute;
    bool is_needed = false;
    if (list.attribute.kind == AttributeKind::kClientAddress) {
      base::IpAddress address;
      problem = attributes_.ClientIp(address);
      if (problem == Problem::kNone && list.networks.Contains(address)) return true;
      is_needed = as == MappedAs::kRefused;
    } else {
      std::string_view value;
      problem = attributes_.Read(list.attribute, NextText(), value);
      if (problem == Problem::kNone &&
          list.values.contains(absl::string_view(value.data(), value.size())))
        return true;
      if (as == MappedAs::kRefused && problem == Problem::kNotValid) problem = Problem::kInvalid;
      is_needed = as == MappedAs::kRefused && problem == Problem::kExpired;
    }
    if (problem == Problem::kInvalid || (problem != Problem::kNone && is_needed)) return false;
  }
  problem = Problem::kNone;
  return false;
}

MappedRequest Mapper::MapBy(const Mapping& mapping) {
  for (const auto& [lists, as] : {std::pair(std::span(mapping.refuse), MappedAs::kRefused),
                                  std::pair(std::span(mapping.exempt), MappedAs::kExempt)}) {
    Problem problem = Problem::kNone;
    const Attribute* attribute = nullptr;
    if (IsInAny(lists, as, problem, attribute))
      return {.as = as, .mapping = &mapping, .descriptors = {}, .attribute = {}};
    if (problem != Problem::kNone)
      return ProblemWith(mapping, problem, "an attribute of a list", attribute);
  }
  entries_.clear();
  entry_counts_.clear();
  descriptors_.clear();
  for (const MappedDescriptor& descriptor : mapping.descriptors) {
    const size_t begin = entries_.size();
    Problem problem = Problem::kNone;
    for (const MappedEntry& entry : descriptor.entries) {
      std::string_view value;
      problem = attributes_.Read(entry.attribute, NextText(), value);
      if (problem == Problem::kMissing && descriptor.optional) break;
      if (problem != Problem::kNone)
        return ProblemWith(mapping, problem, entry.key, &entry.attribute);
      entries_.push_back({.key = entry.key, .value = value});
    }
    if (problem == Problem::kNone) {
      entry_counts_.push_back(entries_.size() - begin);
      descriptors_.push_back({.entries = {}, .cost = descriptor.cost, .override_limit = {}});
    } else {
      entries_.resize(begin);
    }
  }
  // The entries do not move any more.
  std::span<const rule::Entry> rest = entries_;
  for (size_t i = 0; i < descriptors_.size(); ++i) {
    descriptors_[i].entries = rest.first(entry_counts_[i]);
    rest = rest.subspan(entry_counts_[i]);
  }
  return {.as = MappedAs::kDescriptors,
          .mapping = &mapping,
          .descriptors = descriptors_,
          .attribute = {}};
}

std::string& Mapper::NextText() {
  if (texts_used_ == texts_.size()) texts_.emplace_back();
  std::string& text = texts_[texts_used_++];
  text.clear();
  return text;
}

std::string Describe(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kValue:
      return "a fixed value";
    case AttributeKind::kHeader:
      return fmt::format("header {}", attribute.name);
    case AttributeKind::kCookie:
      return fmt::format("cookie {}", attribute.name);
    case AttributeKind::kQuery:
      return fmt::format("query parameter {}", attribute.name);
    case AttributeKind::kMethod:
      return "the method";
    case AttributeKind::kHost:
      return "the host";
    case AttributeKind::kPath:
      return "the path";
    case AttributeKind::kPathPrefix:
      return fmt::format("the first {} segments of the path", attribute.count);
    case AttributeKind::kPathSegment:
      return fmt::format("segment {} of the path", attribute.count);
    case AttributeKind::kClientAddress:
      return "the client's address";
    case AttributeKind::kClaim:
      return fmt::format("claim {} of the token", fmt::join(attribute.claim, "."));
    case AttributeKind::kGeohash:
      return fmt::format("the geohash of headers {} and {}", attribute.name, attribute.second_name);
  }
  return "";
}

std::string DescribeProblem(const MappedRequest& mapped) {
  const std::string name =
      mapped.source == nullptr ? std::string(mapped.attribute) : Describe(*mapped.source);
  if (mapped.as == MappedAs::kInvalid)
    return fmt::format("{} is malformed, ambiguous, or comes twice", name);
  const bool of_token = mapped.source != nullptr && mapped.source->kind == AttributeKind::kClaim;
  return fmt::format("{} is missing{}", name, of_token ? ", or the token is not valid" : "");
}

}  // namespace headgate::mapping
