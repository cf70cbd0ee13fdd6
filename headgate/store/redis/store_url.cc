#include "headgate/store/redis/store_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/percent.h"
#include "headgate/net/server_list.h"
#include "headgate/store/redis/number.h"

namespace headgate::store::redis {
namespace {

constexpr uint16_t kServerPort = 6379;
constexpr uint16_t kSentinelPort = 26379;
constexpr uint32_t kDatabaseMax = 1'000'000;

absl::Status BadUrl(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

absl::Status ParseServers(std::string_view text, RedisOptions& options) {
  const uint16_t port = options.topology == TopologyKind::kSentinel ? kSentinelPort : kServerPort;
  HEADGATE_ASSIGN_OR_RETURN(options.servers, net::ParseServerList(text, port));
  if (options.topology == TopologyKind::kSingle && options.servers.size() > 1) {
    return BadUrl("several servers need redis+ring://, redis+cluster:// or redis+sentinel://");
  }
  return absl::OkStatus();
}

absl::Status ParseLogin(std::string_view login, RedisOptions& options) {
  const size_t colon = std::min(login.find(':'), login.size());
  auto user = base::PercentDecoded(login.substr(0, colon));
  auto password = base::PercentDecoded(login.substr(std::min(colon + 1, login.size())));
  if (!user || !password)
    return BadUrl("a '%' of user or password is not followed by two hexadecimal digits");
  options.user = *std::move(user);
  options.password = *std::move(password);
  return absl::OkStatus();
}

absl::Status ParseDatabase(std::string_view text, RedisOptions& options) {
  const auto database = ParseNumber(text, kDatabaseMax);
  if (!database) return BadUrl(fmt::format("'{}' is not a database number", text));
  options.database = *database;
  return absl::OkStatus();
}

// Parses the part behind the servers.
absl::Status ParsePath(std::string_view path, RedisOptions& options) {
  if (options.topology == TopologyKind::kSentinel) {
    const size_t slash = std::min(path.find('/'), path.size());
    auto name = base::PercentDecoded(path.substr(0, slash));
    if (!name)
      return BadUrl("a '%' of the master's name is not followed by two hexadecimal digits");
    if (name->empty())
      return BadUrl("the master's name is missing: redis+sentinel://HOST/MASTER_NAME");
    options.master_name = *std::move(name);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  if (path.empty()) return absl::OkStatus();
  if (options.topology == TopologyKind::kCluster)
    return BadUrl("a cluster has no databases; remove the text after its servers");
  return ParseDatabase(path, options);
}

absl::Status ParseUnix(std::string_view path, RedisOptions& options) {
  if (const size_t query = path.find('?'); query != std::string_view::npos) {
    const std::string_view parameter = path.substr(query + 1);
    if (!parameter.starts_with("db="))
      return BadUrl("the text behind '?' is not known; only db=NUMBER is");
    if (!ParseDatabase(parameter.substr(3), options).ok())
      return BadUrl("db is not the number of a database");
    path = path.substr(0, query);
  }
  auto decoded = base::PercentDecoded(path);
  if (!decoded) return BadUrl("a '%' of the path is not followed by two hexadecimal digits");
  if (!decoded->starts_with('/'))
    return BadUrl("the path of a Unix socket begins with '/': redis+unix:///PATH");
  options.servers = {{.unix_path = *std::move(decoded)}};
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RedisOptions> ParseStoreUrl(std::string_view url) {
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return BadUrl("'://' is missing");
  const std::string_view scheme = url.substr(0, scheme_end);
  std::string_view rest = url.substr(scheme_end + 3);

  RedisOptions options;
  const size_t plus = std::min(scheme.find('+'), scheme.size());
  const std::string_view protocol = scheme.substr(0, plus);
  const std::string_view kind = scheme.substr(plus);
  if (scheme.find_first_of(":/?@") != std::string_view::npos) return BadUrl("'://' is missing");
  if (protocol != "redis" && protocol != "rediss") {
    return BadUrl(fmt::format("'{}' is unknown; use redis or rediss (TLS)", protocol));
  }
  options.tls = protocol == "rediss";
  if (kind == "+ring") {
    options.topology = TopologyKind::kRing;
  } else if (kind == "+cluster") {
    options.topology = TopologyKind::kCluster;
  } else if (kind == "+sentinel") {
    options.topology = TopologyKind::kSentinel;
  } else if (!kind.empty() && kind != "+unix") {
    return BadUrl(fmt::format("'{}' is not known; +ring, +cluster, +sentinel and +unix are", kind));
  }

  // The login ends at the last '@' before the path: a password may contain an '@' that is not
  // written as %40. An '@' behind it may be the end of a password that has a '/' or a '?'. No
  // message repeats text before an '@', or behind a '?'.
  const size_t path_begin = std::min(rest.find_first_of("/?"), rest.size());
  const bool path_alone = kind == "+unix" && path_begin == 0;
  if (!path_alone && rest.find('@', path_begin) != std::string_view::npos) {
    return BadUrl(
        "an '@' stands behind a '/' or '?'; write '/' of a password as %2F, '?' as %3F, and '@' of "
        "a name or path as %40");
  }
  const size_t login_end = rest.substr(0, path_begin).rfind('@');
  if (login_end != std::string_view::npos) {
    HEADGATE_RETURN_IF_ERROR(ParseLogin(rest.substr(0, login_end), options));
    rest.remove_prefix(login_end + 1);
  }
  if (kind == "+unix") {
    if (options.tls) return BadUrl("TLS over a Unix socket is not supported");
    HEADGATE_RETURN_IF_ERROR(ParseUnix(rest, options));
  } else if (rest.find('?') != std::string_view::npos) {
    return BadUrl("'?' is known only for Unix sockets; a login stands before the host");
  } else {
    const size_t slash = std::min(rest.find('/'), rest.size());
    HEADGATE_RETURN_IF_ERROR(ParseServers(rest.substr(0, slash), options));
    HEADGATE_RETURN_IF_ERROR(ParsePath(rest.substr(std::min(slash + 1, rest.size())), options));
    if (options.topology == TopologyKind::kSentinel && options.master_name.empty()) {
      return BadUrl("the master's name is missing: redis+sentinel://HOST/MASTER_NAME");
    }
  }
  return options;
}

std::string StoreName(const RedisOptions& options) {
  std::string name = options.tls ? "rediss" : "redis";
  switch (options.topology) {
    case TopologyKind::kSingle:
      if (!options.servers.empty() && !options.servers[0].unix_path.empty()) {
        return fmt::format("{}+unix://{}{}", name, options.servers[0].unix_path,
                           options.database == 0 ? "" : fmt::format("?db={}", options.database));
      }
      break;
    case TopologyKind::kRing:
      name += "+ring";
      break;
    case TopologyKind::kCluster:
      name += "+cluster";
      break;
    case TopologyKind::kSentinel:
      name += "+sentinel";
      break;
  }
  name += "://";
  for (size_t i = 0; i < options.servers.size(); ++i)
    name += (i > 0 ? "," : "") + options.servers[i].ToString();
  if (!options.master_name.empty()) name += "/" + options.master_name;
  if (options.database != 0) name += fmt::format("/{}", options.database);
  return name;
}

}  // namespace headgate::store::redis
