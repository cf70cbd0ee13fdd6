#include "headgate/mapping/attribute_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headgate/mapping/geohash.h"

namespace headgate::mapping {
namespace {

struct Word {
  std::string_view text;
  AttributeKind kind;
};
constexpr std::array<Word, 14> kWords = {{{"value", AttributeKind::kValue},
                                          {"header", AttributeKind::kHeader},
                                          {"bearer", AttributeKind::kBearer},
                                          {"cookie", AttributeKind::kCookie},
                                          {"query", AttributeKind::kQuery},
                                          {"method", AttributeKind::kMethod},
                                          {"host", AttributeKind::kHost},
                                          {"path", AttributeKind::kPath},
                                          {"path_prefix", AttributeKind::kPathPrefix},
                                          {"path_segment", AttributeKind::kPathSegment},
                                          {"client_address", AttributeKind::kClientAddress},
                                          {"network", AttributeKind::kNetwork},
                                          {"claim", AttributeKind::kClaim},
                                          {"geohash", AttributeKind::kGeohash}}};
std::string HintForTruth(const Word& word) {
  const bool is_condition = word.kind == AttributeKind::kPath ||
                            word.kind == AttributeKind::kMethod ||
                            word.kind == AttributeKind::kHost;
  std::string hint = fmt::format("write {}: true", word.text);
  if (is_condition)
    hint += fmt::format("; to choose requests, write {} beside descriptors, in the mapping itself",
                        word.text);
  return hint;
}

// A key that may stand beside `claim`.
constexpr std::string_view kIssuer = "jwt";
// A key that may stand beside `network`.
constexpr std::string_view kOtherwise = "otherwise";
// Keys that may stand beside `geohash`.
constexpr std::string_view kLatitude = "latitude_header";
constexpr std::string_view kLongitude = "longitude_header";

constexpr uint64_t kSegmentsMax = 32;

bool NeedsOriginal(AttributeKind kind) {
  using enum AttributeKind;
  return kind == kQuery || kind == kMethod || kind == kHost || IsOfPath(kind);
}

void ReadClaim(YamlFields& fields, const AttributeContext& context, Attribute& attribute) {
  for (PlacedText& name : fields.Texts("claim")) attribute.claim.push_back(std::move(name.text));
  const auto issuer = fields.Text(kIssuer);
  const auto found = issuer ? std::find_if(context.issuers.begin(), context.issuers.end(),
                                           [&](const TokenIssuer& i) { return i.name == *issuer; })
                            : context.issuers.begin();
  if (found == context.issuers.end()) {
    fields.Report("claim",
                  issuer ? fmt::format("no item of jwt has the name '{}'", *issuer)
                         : std::string("claim needs an issuer of tokens"),
                  "describe the issuer at the top of the file: jwt: [{jwks_file: keys.json}]");
  } else if (!issuer && context.issuers.size() > 1) {
    fields.Report("claim", "there are several issuers of tokens", "name one: jwt: NAME");
  } else {
    attribute.issuer = static_cast<uint32_t>(found - context.issuers.begin());
  }
}

constexpr std::string_view kNetworksHint =
    "name lists at the top of the file: networks: [{name: office, networks: [198.51.100.0/24]}]";

void ReadNetworks(YamlFields& fields, const AttributeContext& context, Attribute& attribute) {
  std::vector<std::string> lists;
  for (PlacedText& list : fields.Texts("network")) lists.push_back(std::move(list.text));
  if (lists.size() == 1 && lists[0] == "true") lists.clear();
  if (const auto otherwise = fields.Text(kOtherwise)) {
    attribute.name = *otherwise;
    if (!IsNetworkName(*otherwise))
      fields.Report(kOtherwise, "otherwise is not a name", "otherwise: internet");
  }
  if (context.networks == nullptr || context.networks->empty())
    return fields.Report("network", "the file has no networks", std::string(kNetworksHint));
  for (const std::string& list : lists) {
    if (context.networks->HasList(list)) continue;
    return fields.Report("network",
                         fmt::format("no item of networks has the name '{}'", rule::Shown(list)),
                         "write the name of a list, several of them, or true for all lists");
  }
  std::optional<NetworkLists::Conflict> conflict;
  attribute.table = context.networks->TableOf(lists, conflict);
  if (!conflict) return;
  std::string network;
  base::AppendIpNetwork(conflict->network, network);
  fields.Report("network",
                fmt::format("{} has two names in these lists: '{}' and '{}'", network,
                            rule::Shown(conflict->other), rule::Shown(conflict->name)),
                "leave it in one of them, or name the lists that the attribute is about: network: "
                "[office, clouds]");
}

uint32_t ReadSegments(YamlFields& fields, std::string_view word, std::string_view hint) {
  return static_cast<uint32_t>(fields.Number(word, 1, kSegmentsMax, hint).value_or(0));
}

void ReadGeohash(YamlFields& fields, Attribute& attribute) {
  attribute.count =
      static_cast<uint32_t>(fields
                                .Number("geohash", 1, kGeohashCharactersMax,
                                        "the number of characters: a cell of 5 is about 5 km wide, "
                                        "one of 7 about 150 m")
                                .value_or(0));
  attribute.name = fields.Name(kLatitude, CheckHeaderName).value_or("");
  attribute.second_name = fields.Name(kLongitude, CheckHeaderName).value_or("");
  if (!fields.has(kLatitude) || !fields.has(kLongitude)) {
    fields.Report("geohash", "geohash needs latitude_header and longitude_header",
                  "{geohash: 5, latitude_header: X-Lat, longitude_header: X-Lon}");
  }
}

}  // namespace

std::vector<std::string_view> WordsWithAttributes(std::initializer_list<std::string_view> words) {
  std::vector<std::string_view> all(words);
  for (const Word& word : kWords) all.push_back(word.text);
  all.insert(all.end(), {kIssuer, kOtherwise, kLatitude, kLongitude});
  return all;
}

Attribute ReadAttribute(YamlFields& fields, const AttributeContext& context) {
  const auto is_here = [&](const Word& word) { return fields.has(word.text); };
  const Word* const word = std::find_if(kWords.begin(), kWords.end(), is_here);
  if (std::count_if(kWords.begin(), kWords.end(), is_here) != 1) {
    // If no attribute is named, an unknown word is probably a misspelt attribute, and reported
    // already.
    if (word == kWords.end() && fields.has_other_words()) return {};
    std::vector<std::string_view> names;
    for (const Word& w : kWords) names.push_back(w.text);
    fields.Report(word == kWords.end() ? "" : word->text, "exactly one attribute is needed here",
                  fmt::format("one of {}", fmt::join(names, ", ")));
    return {};
  }
  Attribute attribute{.kind = word->kind};
  if (NeedsOriginal(word->kind) && context.original_request == OriginalRequest::kNone) {
    fields.Report(word->text, fmt::format("'{}' needs original_request", word->text),
                  std::string(kOriginalRequestHint));
  }
  if (fields.has(kOtherwise) && word->kind != AttributeKind::kNetwork) {
    fields.Report(kOtherwise, fmt::format("otherwise does not apply to {}", word->text),
                  "only network has a name for all other clients");
  }
  switch (word->kind) {
    case AttributeKind::kHeader:
      attribute.name = fields.Name(word->text, CheckHeaderName).value_or("");
      break;
    case AttributeKind::kCookie:
      attribute.name = fields.Name(word->text, CheckCookieName).value_or("");
      break;
    case AttributeKind::kValue:
    case AttributeKind::kQuery:
      attribute.name = fields.Text(word->text).value_or("");
      break;
    case AttributeKind::kBearer:
    case AttributeKind::kMethod:
    case AttributeKind::kHost:
    case AttributeKind::kPath:
    case AttributeKind::kClientAddress:
      if (!fields.Truth(word->text, true, HintForTruth(*word)))
        fields.Report(word->text, fmt::format("'{}' is false", word->text),
                      fmt::format("write {}: true, or leave the word out", word->text));
      break;
    case AttributeKind::kPathPrefix:
      attribute.count = ReadSegments(fields, word->text, "of /a/b/c, path_prefix: 2 is /a/b");
      break;
    case AttributeKind::kPathSegment:
      attribute.count = ReadSegments(fields, word->text, "of /a/b/c, path_segment: 2 is b");
      break;
    case AttributeKind::kNetwork:
      ReadNetworks(fields, context, attribute);
      break;
    case AttributeKind::kClaim:
      ReadClaim(fields, context, attribute);
      break;
    case AttributeKind::kGeohash:
      ReadGeohash(fields, attribute);
      break;
  }
  return attribute;
}

}  // namespace headgate::mapping
