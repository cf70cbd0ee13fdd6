// Signs a request to AWS: Signature Version 4.
//
// libcurl can sign too, but it signs every field of the request, in an order and a spelling that
// some servers refuse. Source: "Signing AWS API requests" in the IAM user guide of AWS.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"

namespace headgate::store::dynamodb {

struct Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token{};  // of a role; may be empty
  // Empty: they do not expire.
  std::optional<base::WallTime> expires_at{};

  bool operator==(const Credentials&) const = default;
};

struct ToSign {
  std::string_view method;
  std::string_view authority;  // the value of the Host field
  std::string_view path = "/";
  std::string_view query{};  // sorted and encoded as AWS says
  // Fields that are signed beside Host and those of this file: "Name: value".
  std::vector<std::string> fields{};
  std::string_view body{};
  std::string_view region;
  std::string_view service;
};

// The fields that the request needs: X-Amz-Date, Authorization, and X-Amz-Security-Token if there
// is a session token. A server accepts them from five minutes before `now` until five minutes
// after.
std::vector<std::string> SignatureFields(const ToSign& request, const Credentials& credentials,
                                         base::WallTime now);

}  // namespace headgate::store::dynamodb
