// A store as people write it:
//
//   redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]       one server
//   redis+unix://[USER:PASSWORD@]/PATH[?db=DATABASE]     one server on this machine
//   redis+ring://HOST[:PORT],HOST…[/DATABASE]            independent servers, keys spread by
//   consistent hashing redis+cluster://HOST[:PORT],HOST…                    Redis Cluster; the
//   servers are where to begin asking redis+sentinel://HOST[:PORT],…/MASTER_NAME[/DATABASE]   the
//   servers are sentinels; their port is 26379
//
// With `rediss` for `redis`, over TLS. User and password as above, for the data servers;
// `:PASSWORD@` for a password alone, `USER@` where the password comes from elsewhere. An IPv6
// address stands in brackets. What is special in a URL is written as %XX.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/store/redis/options.h"

namespace headgate::store::redis {

// InvalidArgument with a sentence that says what is wrong, without the password. What else must
// hold, once a password may have been put in, is what RedisOptions::Problems says.
absl::StatusOr<RedisOptions> ParseStoreUrl(std::string_view url);

// The same as a URL again, without user and password: for logs.
std::string StoreName(const RedisOptions& options);

}  // namespace headgate::store::redis
