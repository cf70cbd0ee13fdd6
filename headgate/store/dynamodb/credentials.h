// Credentials of AWS as texts: variables, the shared credentials file, the answers of the endpoints
// for roles. Pure; credential_source.h fetches the texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/store/dynamodb/environment.h"
#include "headgate/store/dynamodb/signature.h"

namespace headgate::store::dynamodb {

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Nothing if neither of the first
// two is set, InvalidArgument if only one is.
absl::StatusOr<std::optional<Credentials>> CredentialsInEnvironment(const Environment& environment);

// The keys of the section [profile]. NotFound if there is no such section, InvalidArgument if it
// lacks a key.
absl::StatusOr<Credentials> CredentialsInFile(std::string_view text, std::string_view profile);

// The answer of an endpoint for the roles of containers or machines.
absl::StatusOr<Credentials> CredentialsInJson(std::string_view text);

// Whether they can stand in the fields of a request.
bool AreUsable(const Credentials& credentials);

}  // namespace headgate::store::dynamodb
