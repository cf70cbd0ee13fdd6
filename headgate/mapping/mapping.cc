#include "headgate/mapping/mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headgate/mapping/host_pattern.h"
#include "headgate/wire/preflight.h"

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

MappedRequest Mapper::Map(const DescribedRequest& request, int64_t now_s) {
  attributes_.Begin(request, set_->attributes, tokens_, now_s);
  texts_used_ = 0;
  why_ = {};
  MappedRequest mapped = MapByFirst();
  if (mapped.as == MappedAs::kInvalid) mapped.why = why_.empty() ? attributes_.why() : why_;
  mapped.has_read_path = attributes_.has_read_path();
  mapped.token_refusal = tokens_.refusal();
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
  if (!mapping.paths.empty() && !FitsPath(mapping, problem)) return false;
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
         std::any_of(mapping.methods.begin(), mapping.methods.end(),
                     [&](const std::string& m) { return MethodFits(m, method); });
}

// The mapping must fit, or not fit, in the same way for a server that does not resolve dot
// segments, and for a server that runs a script in the path. Otherwise the request is invalid.
bool Mapper::FitsPath(const Mapping& mapping, Problem& problem) {
  const auto fits = [&](std::string_view path) {
    return std::any_of(mapping.paths.begin(), mapping.paths.end(),
                       [&](const PathPattern& pattern) { return pattern.Matches(path); });
  };
  std::string_view path;
  problem = attributes_.Path(path);
  if (problem != Problem::kNone) return false;
  const bool is_fit = fits(path);
  const std::string_view unresolved = attributes_.unresolved_path();
  if (!unresolved.empty() && fits(unresolved) != is_fit) {
    why_ = "a server that does not resolve dot segments finds another mapping";
  } else if (!is_fit && attributes_.FitsBehindScript(fits)) {
    why_ = "a server that runs the script in the path finds another mapping";
  } else {
    return is_fit;
  }
  problem = Problem::kInvalid;
  return false;
}

// A list of refusals also names a path with dot segments or a script that leads to one of its
// values.
bool Mapper::IsIn(const AttributeList& list, MappedAs as, Problem& problem) {
  std::string_view value;
  problem = attributes_.Read(list.attribute, NextText(), value);
  const bool is_ambiguous = problem == Problem::kInvalid &&
                            !attributes_.unresolved_path().empty() && IsOfPath(list.attribute.kind);
  if (problem != Problem::kNone && (as != MappedAs::kRefused || !is_ambiguous)) return false;
  const auto contains = [&](std::string_view text) {
    return list.values.contains(absl::string_view(text.data(), text.size()));
  };
  if (contains(value)) return true;
  if (as == MappedAs::kRefused && IsOfPath(list.attribute.kind) &&
      attributes_.IsInBehindScript(list.attribute, contains)) {
    return true;
  }
  return list.attribute.kind == AttributeKind::kMethod && contains(attributes_.request().method);
}

// A missing attribute is in no list. But a client with an unknown address must not slip past a list
// that refuses addresses, nor a client that spoils its token past a list that refuses claims.
bool Mapper::IsInAny(std::span<const AttributeList> lists, MappedAs as, Problem& problem,
                     const Attribute*& attribute) {
  for (const AttributeList& list : lists) {
    attribute = &list.attribute;
    bool is_needed = false;
    if (list.attribute.kind == AttributeKind::kClientAddress) {
      bool is_in = false;
      problem = attributes_.IsClientIn(list.networks, is_in);
      if (is_in) return true;
      is_needed = as == MappedAs::kRefused;
    } else {
      if (IsIn(list, as, problem)) return true;
      if (as == MappedAs::kRefused && problem == Problem::kNotValid) problem = Problem::kInvalid;
      const bool is_nobody = list.attribute.kind == AttributeKind::kNetwork &&
                             problem == Problem::kMissing &&
                             attributes_.FindClient() != Problem::kNone;
      is_needed = as == MappedAs::kRefused && (problem == Problem::kExpired || is_nobody);
    }
    if (problem == Problem::kInvalid || (problem != Problem::kNone && is_needed)) return false;
  }
  problem = Problem::kNone;
  return false;
}

bool Mapper::IsFreePreflight(const Mapping& mapping) const {
  const DescribedRequest& request = attributes_.request();
  if (!request.is_preflight &&
      (!set_->passes_preflights || !wire::IsPreflight(request.method, request.fields))) {
    return false;
  }
  return std::none_of(mapping.descriptors.begin(), mapping.descriptors.end(),
                      [&](const MappedDescriptor& descriptor) {
                        return std::any_of(
                            descriptor.entries.begin(), descriptor.entries.end(),
                            [&](const MappedEntry& entry) { return NamesClient(entry.attribute); });
                      });
}

bool Mapper::NamesClient(const Attribute& attribute) const {
  std::string_view name;
  if (attribute.kind == AttributeKind::kHeader) name = attribute.name;
  if (attribute.kind == AttributeKind::kClaim && set_->issuers[attribute.issuer].cookie.empty())
    name = set_->issuers[attribute.issuer].header;
  if (name.empty() || wire::IsOfBrowsers(name)) return false;
  std::string_view value;
  return attributes_.request().FindHeader(name, value) != wire::Lookup::kAbsent;
}

MappedRequest Mapper::MapBy(const Mapping& mapping) {
  for (const auto& [lists, as] : {std::pair(std::span(mapping.refuse), MappedAs::kRefused),
                                  std::pair(std::span(mapping.exempt), MappedAs::kExempt)}) {
    if (as == MappedAs::kExempt && IsFreePreflight(mapping))
      return {.as = MappedAs::kPreflight, .mapping = &mapping, .descriptors = {}, .attribute = {}};
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
    std::string_view given;
    if (problem == Problem::kNone && descriptor.limit_from) {
      const Attribute& from = *descriptor.limit_from;
      problem = attributes_.GivenLimit(from, NextText(), given);
      if (problem == Problem::kMissing) problem = Problem::kNone;
      if (problem != Problem::kNone) return ProblemWith(mapping, problem, "limit_from", &from);
    }
    if (problem == Problem::kNone) {
      entry_counts_.push_back(entries_.size() - begin);
      descriptors_.push_back(
          {.entries = {}, .cost = descriptor.cost, .override_limit = {}, .given_limit = given});
    } else {
      entries_.resize(begin);
    }
  }
  // All entries are added, so pointers to them stay valid from here on.
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

void SetHeaders(MappingSet& set) {
  set.headers.clear();
  const auto add = [&](const std::string& name) {
    if (std::find(set.headers.begin(), set.headers.end(), name) == set.headers.end())
      set.headers.push_back(name);
  };
  const auto add_attribute = [&](const Attribute& attribute) {
    if (attribute.kind == AttributeKind::kHeader || attribute.kind == AttributeKind::kGeohash)
      add(attribute.name);
    if (attribute.kind == AttributeKind::kGeohash) add(attribute.second_name);
  };
  for (const TokenIssuer& issuer : set.issuers) {
    if (issuer.cookie.empty()) add(issuer.header);
  }
  for (const Mapping& mapping : set.mappings) {
    for (const auto& lists : {std::span(mapping.refuse), std::span(mapping.exempt)}) {
      for (const AttributeList& list : lists) add_attribute(list.attribute);
    }
    for (const MappedDescriptor& descriptor : mapping.descriptors) {
      for (const MappedEntry& entry : descriptor.entries) add_attribute(entry.attribute);
      if (descriptor.limit_from) add_attribute(*descriptor.limit_from);
    }
  }
}

bool MethodFits(std::string_view condition, std::string_view method) {
  return condition == method || (condition == "GET" && method == "HEAD");
}

std::string Describe(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kValue:
      return "a fixed value";
    case AttributeKind::kHeader:
      return fmt::format("header {}", attribute.name);
    case AttributeKind::kBearer:
      return "the token in Authorization";
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
    case AttributeKind::kNetwork:
      return "the network of the client's address";
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
  if (mapped.lacks_valid_token())
    return fmt::format("{} cannot be read: {}", name, jwt::Describe(mapped.token_refusal));
  if (mapped.as == MappedAs::kInvalid) return fmt::format("{} is invalid: {}", name, mapped.why);
  return fmt::format("{} is missing", name);
}

}  // namespace headgate::mapping
