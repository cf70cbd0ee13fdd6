// A store as people write it:
//
//   redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]                 one server
//   redis+unix://[USER:PASSWORD@]/PATH[?db=DATABASE]               one server on this machine
//   redis+ring://HOST[:PORT],HOST[:PORT]…[/DATABASE]               independent servers, keys spread by consistent
//   hashing redis+cluster://HOST[:PORT],HOST[:PORT]…                       Redis Cluster; the servers are where to
//   begin asking redis+sentinel://HOST[:PORT],…/MASTER_NAME[/DATABASE]          the servers are sentinels; their port
//   is 26379
//
// With `rediss` for `redis`, over TLS. User and password as above, `:PASSWORD@` for a password alone, for the data
// servers. An IPv6 address stands in brackets. What is special in a URL is written as %XX.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/store/redis/options.h"

namespace headgate::store::redis {

// InvalidArgument with a sentence that says what is wrong, without the password.
absl::StatusOr<RedisOptions> ParseStoreUrl(std::string_view url);

// The same as a URL again, without user and password: for logs.
std::string StoreName(const RedisOptions& options);

}  // namespace headgate::store::redis
