// A table of DynamoDB, as a URL:
//
//   dynamodb://TABLE[?region=REGION][&endpoint=URL][&profile=PROFILE]
//
//   region     if absent: AWS_REGION, or AWS_DEFAULT_REGION
//   endpoint   http(s)://HOST[:PORT]; if absent: AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL, or
//              https://dynamodb.REGION.amazonaws.com
//   profile    of the shared credentials file; if absent: AWS_PROFILE
//
// Values may have %XX. The URL has no credentials (credentials.h).
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/client/http/origin.h"
#include "headgate/store/dynamodb/environment.h"

namespace headgate::store::dynamodb {

struct Table {
  std::string name;
  std::string region;
  client::http::Origin endpoint;
  std::string profile{};

  bool operator==(const Table&) const = default;
};

// InvalidArgument with a message that repeats nothing that may be a secret.
absl::StatusOr<Table> ParseTableUrl(std::string_view url, const Environment& environment);

// "dynamodb://TABLE?region=REGION&endpoint=URL": the same table wherever it is read.
std::string NameOf(const Table& table);

}  // namespace headgate::store::dynamodb
