// A place in an ensemble, as a URL: "zk://HOST[:PORT],HOST[:PORT],…/path".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/secret.h"
#include "headgate/base/status.h"
#include "headgate/net/connector.h"

namespace headgate::client::zookeeper {

// Everything that Headgate keeps in ZooKeeper is below it, unless the URL has another path.
inline constexpr std::string_view kDefaultPath = "/rate-limiter";

struct Place {
  std::vector<net::StreamTarget> servers;
  std::string path;     // of a node, "/" for the top
  base::Secret digest;  // "user:password", or empty
};

// The default port is 2181. The path of a URL without one is `default_path`. A user and password
// ("zk://user:password@HOST") are for ZooKeeper's `digest` scheme; special characters are written
// as %XX, in the path too. InvalidArgument, with a message without the password, if the URL does
// not have this form or ZooKeeper does not accept the path. `password`, unless it is empty,
// replaces the one of the URL, which then needs only a user.
absl::StatusOr<Place> ParsePlace(std::string_view url, std::string_view default_path,
                                 const base::Secret& password = {});

// The URL without user and password, for logs.
std::string NameOf(const Place& place);

// Whether both are the same node of the same ensemble: the paths are equal, and they name a server
// in common. A server with two names is not recognised.
bool SamePlace(const Place& a, const Place& b);

}  // namespace headgate::client::zookeeper
