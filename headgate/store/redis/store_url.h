// The URL of a Redis store:
//
//   redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]          one server
//   redis+unix://[USER:PASSWORD@]/PATH[?db=DATABASE]        one server on this machine
//   redis+ring://HOST[:PORT],HOST…[/DATABASE]               independent servers; keys are spread
//                                                           by consistent hashing
//   redis+cluster://HOST[:PORT],HOST…                       Redis Cluster; the first nodes to ask
//   redis+sentinel://HOST[:PORT],…/MASTER_NAME[/DATABASE]   sentinels; their port is 26379
//
// `rediss` instead of `redis` means TLS. User and password, as in the first form, are for the data
// servers: `:PASSWORD@` for a password alone, `USER@` if the password comes from elsewhere. An IPv6
// address stands in brackets. Special characters are written as %XX: in a login '/', '?' and '%',
// in a path or name '@'.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/store/redis/options.h"

namespace headgate::store::redis {

// InvalidArgument with a message that does not contain the password. RedisOptions::Problems checks
// the rest, after a password from elsewhere has been added.
absl::StatusOr<RedisOptions> ParseStoreUrl(std::string_view url);

// The options as a URL without user and password, for logs.
std::string StoreName(const RedisOptions& options);

}  // namespace headgate::store::redis
