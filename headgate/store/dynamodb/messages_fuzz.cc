// Reads any bytes as an answer of DynamoDB, which is read or refused, and writes any bytes as a
// name and a value, which are read back as the same.
#include <absl/strings/escaping.h>

#include <boost/json/parse.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/dynamodb/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace dynamodb = headgate::store::dynamodb;
  namespace cas = headgate::store::cas;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)dynamodb::ParseItem(text);
  (void)dynamodb::ParseHeartbeats(text);
  HEADGATE_CHECK(!dynamodb::ParseRefusal(400, text).status.ok());

  const std::string key = dynamodb::KeyOf(text);
  const std::string body = dynamodb::PutBody("t", key, text, cas::Version{7}, {.number = 8}, {});
  boost::system::error_code error;
  const auto parsed = boost::json::parse({body.data(), body.size()}, error);
  HEADGATE_CHECK(!error);
  const auto& request = parsed.as_object();
  HEADGATE_CHECK(request.at("Key").at("name").at("S").as_string() ==
                 boost::json::string_view(key.data(), key.size()));
  std::string state(request.at("ExpressionAttributeValues").at(":s").at("B").as_string());
  const std::string item = R"({"Item":{"version":{"N":"8"},"state":{"B":")" + state + R"("}}})";
  const auto read = dynamodb::ParseItem(item);
  HEADGATE_CHECK(read.ok() && read->has_value() && (*read)->bytes == text);
  return 0;
}
