#include "headgate/store/dynamodb/messages.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "headgate/base/json.h"
#include "headgate/base/utf8.h"
#include "headgate/store/cas/removal.h"
#include "headgate/wire/digest.h"
#include "headgate/wire/json.h"

namespace headgate::store::dynamodb {
namespace {

using wire::Json;

// A longer one would make each write larger; DynamoDB takes 2048 bytes.
constexpr size_t kNameBytesMax = 200;
constexpr size_t kMessageBytesMax = 300;
constexpr std::string_view kInstancePrefix = "i:";

std::string Quoted(std::string_view text) {
  std::string quoted;
  base::AppendJsonString(text, quoted);
  return quoted;
}

std::string TableAndKey(std::string_view table, std::string_view key) {
  return fmt::format(R"("TableName":{},"Key":{{"name":{{"S":{}}}}})", Quoted(table), Quoted(key));
}

uint64_t NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// "com.amazonaws.dynamodb.v20120810#ThrottlingException" is "ThrottlingException".
std::string_view ShortType(std::string_view type) {
  type.remove_prefix(std::min(type.rfind('#') + 1, type.size()));
  return type.substr(0, type.find(':'));
}

bool IsOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

absl::StatusCode CodeOf(int http_status, std::string_view type, std::string_view message) {
  using enum absl::StatusCode;
  if (type == "ConditionalCheckFailedException") return kAborted;
  if (IsOneOf(type, {"ProvisionedThroughputExceededException", "ThrottlingException", "Throttling",
                     "RequestLimitExceeded", "ThrottledException", "RequestThrottledException",
                     "LimitExceededException", "TransactionConflictException"}) ||
      http_status == 429)
    return kResourceExhausted;
  if (http_status >= 500) return kUnknown;
  if (type == "ResourceNotFoundException" || type == "TableNotFoundException") return kNotFound;
  if (type == "ResourceInUseException" || type == "TableAlreadyExistsException")
    return kAlreadyExists;
  if (type == "ItemCollectionSizeLimitExceededException" || http_status == 413) return kOutOfRange;
  if (type == "UnknownOperationException") return kUnimplemented;
  if (type == "ValidationException") {
    const bool is_size = message.find("tem size") != std::string_view::npos;
    return is_size ? kOutOfRange : kInvalidArgument;
  }
  if (IsOneOf(type,
              {"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException",
               "ExpiredTokenException", "ExpiredToken", "InvalidClientTokenId",
               "IncompleteSignatureException", "MissingAuthenticationTokenException",
               "MissingAuthenticationToken", "SignatureDoesNotMatch", "RequestExpired"}) ||
      http_status == 401 || http_status == 403)
    return kPermissionDenied;
  return kInvalidArgument;
}

}  // namespace

std::string KeyOf(std::string_view name) {
  if (!name.empty() && name.size() <= kNameBytesMax && base::IsUtf8(name)) return std::string(name);
  return "sha256:" + wire::DigestHex(wire::Digest::kSha256, name).substr(0, 32);
}

std::string GetBody(std::string_view table, std::string_view key) {
  return fmt::format("{{{},\"ConsistentRead\":true}}", TableAndKey(table, key));
}

std::string PutBody(std::string_view table, std::string_view key, std::string_view bytes,
                    std::optional<cas::Version> expected, cas::Version next,
                    base::Instant expires_at) {
  const bool has_version = expected && expected->number != 0;
  const std::string_view condition = !expected     ? "attribute_not_exists(#n)"
                                     : has_version ? "#v = :o"
                                                   : "attribute_exists(#n) AND "
                                                     "attribute_not_exists(#v)";
  const std::string_view name = expected && has_version ? "" : R"(,"#n":"name")";
  const std::string old =
      has_version ? fmt::format(R"(,":o":{{"N":"{}"}})", expected->number) : std::string();
  const int64_t expires_s =
      std::chrono::ceil<std::chrono::seconds>(base::Duration((expires_at + cas::kRemovalGrace).ns))
          .count();
  return fmt::format(
      R"({{{},"UpdateExpression":"SET #s = :s, #v = :v, #e = :e","ConditionExpression":"{}",)"
      R"("ExpressionAttributeNames":{{"#s":"state","#v":"version","#e":"expires"{}}},)"
      R"("ExpressionAttributeValues":{{":s":{{"B":"{}"}},":v":{{"N":"{}"}},":e":{{"N":"{}"}}{}}}}})",
      TableAndKey(table, key), condition, name, absl::Base64Escape({bytes.data(), bytes.size()}),
      next.number, expires_s, old);
}

std::string DeleteBody(std::string_view table, std::string_view key, cas::Version expected) {
  return fmt::format(
      R"({{{},"ConditionExpression":"#v = :o","ExpressionAttributeNames":{{"#v":"version"}},)"
      R"("ExpressionAttributeValues":{{":o":{{"N":"{}"}}}}}})",
      TableAndKey(table, key), expected.number);
}

absl::StatusOr<std::optional<cas::Versioned>> ParseItem(std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  if (!answer.is_object()) return absl::UnknownError("the answer is not a JSON object");
  const Json* const item = answer.Find("Item");
  if (item == nullptr) return std::nullopt;
  if (!item->is_object()) return absl::UnknownError("the answer's Item is not an object");
  cas::Versioned value;
  value.version.number = NumberIn((*item)["version"]["N"].text());
  const std::string_view state = (*item)["state"]["B"].text();
  if (!absl::Base64Unescape({state.data(), state.size()}, &value.bytes)) value.bytes.clear();
  return value;
}

std::string HeartbeatBody(std::string_view table, std::string_view key, std::string_view instance,
                          int64_t time_ms, int64_t expires_s,
                          const std::vector<std::string>& silent) {
  std::string removed, names;
  for (size_t i = 0; i < silent.size(); ++i) {
    removed += fmt::format("{}#r{}", i == 0 ? " REMOVE " : ", ", i);
    names +=
        fmt::format(",\"#r{}\":{}", i, Quoted(fmt::format("{}{}", kInstancePrefix, silent[i])));
  }
  return fmt::format(
      R"({{{},"UpdateExpression":"SET #i = :t, #e = :e{}",)"
      R"("ExpressionAttributeNames":{{"#i":{},"#e":"expires"{}}},)"
      R"("ExpressionAttributeValues":{{":t":{{"N":"{}"}},":e":{{"N":"{}"}}}},"ReturnValues":"ALL_NEW"}})",
      TableAndKey(table, key), removed, Quoted(fmt::format("{}{}", kInstancePrefix, instance)),
      names, time_ms, expires_s);
}

std::string LeaveBody(std::string_view table, std::string_view key, std::string_view instance) {
  return fmt::format(
      R"({{{},"UpdateExpression":"REMOVE #i","ExpressionAttributeNames":{{"#i":{}}}}})",
      TableAndKey(table, key), Quoted(fmt::format("{}{}", kInstancePrefix, instance)));
}

absl::StatusOr<std::vector<Heartbeat>> ParseHeartbeats(std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  const Json& attributes = answer["Attributes"];
  if (!attributes.is_object()) return absl::UnknownError("the answer has no attributes");
  std::vector<Heartbeat> beats;
  for (const auto& [name, value] : attributes.members()) {
    if (!name.starts_with(kInstancePrefix)) continue;
    const uint64_t time_ms = NumberIn(value["N"].text());
    if (time_ms <= uint64_t{INT64_MAX})
      beats.push_back({.instance = name.substr(kInstancePrefix.size()),
                       .time_ms = static_cast<int64_t>(time_ms)});
  }
  return beats;
}

Refusal ParseRefusal(int http_status, std::string_view body) {
  const Json answer = Json::Parse(body).value_or(nullptr);
  const std::string_view type = ShortType(answer["__type"].text(answer["code"].text()));
  const std::string_view message =
      answer["message"].text(answer["Message"].text()).substr(0, kMessageBytesMax);
  std::string text = fmt::format("DynamoDB answered {}", http_status);
  if (!type.empty()) text += fmt::format(" {}", type);
  if (!message.empty()) text += fmt::format(": {}", message);
  Refusal refusal{.status = absl::Status(CodeOf(http_status, type, message), text)};
  refusal.is_about_time = message.find("Signature expired") != std::string_view::npos ||
                          message.find("Signature not yet current") != std::string_view::npos ||
                          type == "RequestExpired";
  refusal.is_about_credentials =
      !refusal.is_about_time &&
      IsOneOf(type, {"UnrecognizedClientException", "ExpiredTokenException", "ExpiredToken",
                     "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch"});
  return refusal;
}

}  // namespace headgate::store::dynamodb
