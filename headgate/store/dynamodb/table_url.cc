#include "headgate/store/dynamodb/table_url.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"

namespace headgate::store::dynamodb {
namespace {

using absl::Status;

constexpr std::string_view kScheme = "dynamodb://";
constexpr size_t kNameSizeMin = 3;
constexpr size_t kNameSizeMax = 255;
constexpr size_t kRegionSizeMax = 63;
constexpr size_t kProfileSizeMax = 255;

Status BadUrl(std::string what) { return absl::InvalidArgumentError(std::move(what)); }

bool IsTableName(std::string_view name) {
  return name.size() >= kNameSizeMin && name.size() <= kNameSizeMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return base::IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.';
         });
}

// Only letters, digits and '-', because the region becomes part of a host name.
bool IsRegion(std::string_view region) {
  return !region.empty() && region.size() <= kRegionSizeMax &&
         std::all_of(region.begin(), region.end(),
                     [](char c) { return base::IsLower(c) || base::IsDigit(c) || c == '-'; });
}

bool IsProfile(std::string_view profile) {
  return profile.size() <= kProfileSizeMax &&
         std::none_of(profile.begin(), profile.end(),
                      [](char c) { return base::IsControl(c) || c == '[' || c == ']'; });
}

struct Parameters {
  std::string region, endpoint, profile;
};

Status ReadParameter(std::string_view text, Parameters& parameters) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  std::string* const to = name == "region"     ? &parameters.region
                          : name == "endpoint" ? &parameters.endpoint
                          : name == "profile"  ? &parameters.profile
                                               : nullptr;
  if (to == nullptr) {
    return BadUrl(
        "it has a parameter other than region, endpoint and profile; credentials come from the "
        "environment, the shared credentials file or a role");
  }
  const auto value = base::PercentDecoded(text.substr(std::min(equals + 1, text.size())));
  if (!value) return BadUrl("a '%' is not followed by two hexadecimal digits");
  if (value->empty()) return BadUrl(fmt::format("{} has no value", name));
  if (!to->empty()) return BadUrl(fmt::format("{} is given twice", name));
  *to = *value;
  return absl::OkStatus();
}

std::string FirstSet(const Environment& environment, std::string value,
                     std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (value.empty()) value = environment(name);
  return value;
}

absl::StatusOr<client::http::Origin> EndpointOf(const std::string& given, const std::string& region,
                                                const Environment& environment) {
  const std::string text =
      FirstSet(environment, given, {"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"});
  if (text.empty()) {
    const bool is_china = region.starts_with("cn-");
    return client::http::Origin{
        .tls = true,
        .host = fmt::format("dynamodb.{}.amazonaws.com{}", region, is_china ? ".cn" : ""),
        .port = 443};
  }
  auto origin = client::http::ParseOrigin(text);
  if (!origin.ok())
    return BadUrl(
        fmt::format("the endpoint cannot be used: {}", std::string(origin.status().message())));
  return origin;
}

}  // namespace

absl::StatusOr<Table> ParseTableUrl(std::string_view url, const Environment& environment) {
  if (!url.starts_with(kScheme)) return BadUrl("it does not begin with dynamodb://");
  url.remove_prefix(kScheme.size());
  const size_t query = std::min(url.find('?'), url.size());
  Table table{.name = std::string(url.substr(0, query)), .region = {}, .endpoint = {}};
  if (table.name.ends_with('/')) table.name.pop_back();
  if (table.name.find('@') != std::string::npos) {
    return BadUrl(
        "there is an '@' before the table; credentials come from the environment, the shared "
        "credentials file or a role");
  }
  if (!IsTableName(table.name)) {
    return BadUrl(
        "behind dynamodb:// stands no name of a table: 3 to 255 letters, digits, '_', '-' or '.'");
  }
  Parameters parameters;
  for (std::string_view rest = url.substr(std::min(query + 1, url.size())); !rest.empty();) {
    const size_t end = std::min(rest.find('&'), rest.size());
    HEADGATE_RETURN_IF_ERROR(ReadParameter(rest.substr(0, end), parameters));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  table.region = FirstSet(environment, parameters.region, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (table.region.empty()) return BadUrl("the region is missing");
  if (!IsRegion(table.region))
    return BadUrl("the region is not one, such as eu-west-1: small letters, digits and '-'");
  HEADGATE_ASSIGN_OR_RETURN(table.endpoint,
                            EndpointOf(parameters.endpoint, table.region, environment));
  table.profile = FirstSet(environment, parameters.profile, {"AWS_PROFILE"});
  if (!IsProfile(table.profile)) return BadUrl("the profile is not the name of one");
  return table;
}

std::string NameOf(const Table& table) {
  return fmt::format("{}{}?region={}&endpoint={}", kScheme, table.name, table.region,
                     table.endpoint.ToString());
}

}  // namespace headgate::store::dynamodb
