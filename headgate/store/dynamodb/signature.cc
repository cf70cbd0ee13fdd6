#include "headgate/store/dynamodb/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "headgate/base/text.h"
#include "headgate/wire/digest.h"

namespace headgate::store::dynamodb {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

// "20150830T123600Z"
std::string TimeText(base::WallTime now) {
  const std::chrono::sys_time<std::chrono::nanoseconds> time{std::chrono::nanoseconds(now.ns)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string_view View(const wire::Mac& mac) { return {mac.data(), mac.size()}; }

wire::Mac KeyOf(const Credentials& credentials, std::string_view day, const ToSign& request) {
  wire::Mac key = wire::HmacSha256("AWS4" + credentials.secret_key, day);
  for (const std::string_view part :
       {request.region, request.service, std::string_view("aws4_request")})
    key = wire::HmacSha256(View(key), part);
  return key;
}

// The signed fields by their names in lower case.
std::map<std::string, std::string> SignedFields(const ToSign& request,
                                                const std::vector<std::string>& added) {
  std::map<std::string, std::string> fields = {{"host", std::string(request.authority)}};
  for (const auto* list : {&request.fields, &added}) {
    for (const std::string& field : *list) {
      const size_t colon = std::min(field.find(':'), field.size());
      std::string name = field.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), base::ToLower);
      fields[name] =
          base::Trimmed(std::string_view(field).substr(std::min(colon + 1, field.size())));
    }
  }
  return fields;
}

}  // namespace

std::vector<std::string> SignatureFields(const ToSign& request, const Credentials& credentials,
                                         base::WallTime now) {
  const std::string time = TimeText(now);
  const std::string day = time.substr(0, 8);
  std::vector<std::string> added = {"X-Amz-Date: " + time};
  if (!credentials.session_token.empty())
    added.push_back("X-Amz-Security-Token: " + credentials.session_token);

  std::string field_lines, names;
  for (const auto& [name, value] : SignedFields(request, added)) {
    field_lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, request.query,
                  field_lines, names, wire::DigestHex(wire::Digest::kSha256, request.body));
  const std::string scope =
      fmt::format("{}/{}/{}/aws4_request", day, request.region, request.service);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, scope,
                                       wire::DigestHex(wire::Digest::kSha256, canonical));
  std::string signature;
  for (const char byte : wire::HmacSha256(View(KeyOf(credentials, day, request)), text))
    base::AppendHex(static_cast<uint8_t>(byte), signature);
  added.push_back(fmt::format("Authorization: {} Credential={}/{}, SignedHeaders={}, Signature={}",
                              kAlgorithm, credentials.access_key, scope, names, signature));
  return added;
}

}  // namespace headgate::store::dynamodb
