#include "headgate/client/zookeeper/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/percent.h"
#include "headgate/client/zookeeper/node_name.h"
#include "headgate/net/server_list.h"

namespace headgate::client::zookeeper {
namespace {

constexpr uint16_t kPort = 2181;
constexpr std::string_view kScheme = "zk://";

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

absl::StatusOr<base::Secret> ParseDigest(std::string_view login,
                                         const base::Secret& given_password) {
  const size_t colon = std::min(login.find(':'), login.size());
  if (colon == 0 || (colon == login.size() && given_password.empty())) {
    return Bad(
        "a login is USER:PASSWORD, or USER if a file has the password, for ZooKeeper's digest "
        "scheme");
  }
  const auto user = base::PercentDecoded(login.substr(0, colon));
  const auto password = given_password.empty() ? base::PercentDecoded(login.substr(colon + 1)) : "";
  if (!user || !password)
    return Bad("a '%' of user or password is not followed by two hexadecimal digits");
  if (user->find(':') != std::string::npos) return Bad("a user with a ':' cannot log in");
  if (given_password.empty()) return base::Secret(*user + ":" + *password);
  return base::Secret([user = *user, given_password] { return user + ":" + given_password.Now(); });
}

}  // namespace

absl::StatusOr<Place> ParsePlace(std::string_view url, std::string_view default_path,
                                 const base::Secret& password) {
  if (!url.starts_with(kScheme)) return Bad("it does not begin with zk://");
  url.remove_prefix(kScheme.size());
  Place place;
  // No message repeats text before an '@': it may be a password.
  if (url.substr(std::min(url.find('/'), url.size())).find('@') != std::string_view::npos) {
    return Bad(
        "an '@' stands behind a '/'; write a '/' of a password as %2F, and an '@' of a path "
        "as %40");
  }
  const size_t login_end = url.substr(0, url.find('/')).rfind('@');
  if (login_end != std::string_view::npos) {
    HEADGATE_ASSIGN_OR_RETURN(place.digest, ParseDigest(url.substr(0, login_end), password));
    url.remove_prefix(login_end + 1);
  } else if (!password.empty()) {
    return Bad("a password needs a user: zk://USER@HOST");
  }
  const size_t slash = std::min(url.find('/'), url.size());
  HEADGATE_ASSIGN_OR_RETURN(place.servers, net::ParseServerList(url.substr(0, slash), kPort));
  const auto path = base::PercentDecoded(slash == url.size() ? default_path : url.substr(slash));
  if (!path) return Bad("a '%' of the path is not followed by two hexadecimal digits");
  place.path = *path;
  if (place.path.size() > 1 && place.path.back() == '/') place.path.pop_back();
  if (!IsNodePath(place.path))
    return Bad(fmt::format("'{}' is not the path of a node, such as /rate-limiter", place.path));
  return place;
}

std::string NameOf(const Place& place) {
  std::string name(kScheme);
  for (size_t i = 0; i < place.servers.size(); ++i)
    name += (i > 0 ? "," : "") + place.servers[i].ToString();
  return name + place.path;
}

bool SamePlace(const Place& a, const Place& b) {
  return a.path == b.path &&
         std::any_of(a.servers.begin(), a.servers.end(), [&](const net::StreamTarget& server) {
           return std::find(b.servers.begin(), b.servers.end(), server) != b.servers.end();
         });
}

}  // namespace headgate::client::zookeeper
