#include "headgate/store/redis/options.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <utility>

namespace headgate::store::redis {

std::vector<RedisOptions::Problem> RedisOptions::Problems() const {
  std::vector<Problem> problems;
  const auto bad = [&](std::string_view field, std::string what) {
    problems.push_back({field, std::move(what)});
  };
  const auto positive = [&](std::string_view field, base::Duration value) {
    if (value <= base::Duration(0)) bad(field, fmt::format("{} must be more than 0", field));
  };
  const auto at_least_one = [&](std::string_view field, uint32_t value) {
    if (value == 0) bad(field, fmt::format("{} must be at least 1", field));
  };
  if (servers.empty()) bad("servers", "no server is named");
  for (const net::StreamTarget& server : servers) {
    if (server.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      bad("servers",
          fmt::format("the path of the Unix socket has {} bytes; the system takes at most {}",
                      server.unix_path.size(), sizeof(sockaddr_un::sun_path) - 1));
    }
  }
  if (topology == TopologyKind::kSingle && servers.size() > 1) {
    bad("servers", "a single store has one server; several are a ring, a cluster or sentinels");
  }
  if (topology == TopologyKind::kCluster && database != 0)
    bad("database", "a cluster has no database but 0");
  if (topology == TopologyKind::kSentinel && master_name.empty()) {
    bad("master_name", "sentinels need the name of the master");
  }
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  if (std::any_of(client_name.begin(), client_name.end(), is_bad)) {
    bad("client_name", "the client's name must be printable ASCII without spaces");
  }
  if (!user.empty() && password.empty()) bad("user", "a user needs a password");
  if (!sentinel_user.empty() && sentinel_password.empty()) {
    bad("sentinel_user", "a user of the sentinels needs a password");
  }
  if (topology != TopologyKind::kSentinel && !sentinel_password.empty()) {
    bad("sentinel_password", "a login to sentinels is given, and the store has none");
  }
  if (tls_files.certificate_file.empty() != tls_files.key_file.empty()) {
    bad(tls_files.key_file.empty() ? "certificate" : "key",
        "a client certificate needs its key and a key its certificate; give both");
  }
  positive("timeout", timeout);
  positive("connect_timeout", connect_timeout);
  positive("reply_overdue", reply_overdue);
  positive("reconnect_min", reconnect_min);
  if (reconnect_max < reconnect_min)
    bad("reconnect_max", "reconnect_max is less than reconnect_min");
  positive("breaker_open_min", breaker.open_min);
  if (breaker.no_progress < base::Duration(0))
    bad("breaker_no_progress", "breaker_no_progress is less than 0");
  if (breaker.open_max < breaker.open_min) {
    bad("breaker_open_max", "breaker_open_max is less than breaker_open_min");
  }
  at_least_one("breaker_failures_in_row", breaker.failures_in_row);
  at_least_one("connections_per_server", connections_per_server);
  at_least_one("in_flight_max", in_flight_max);
  return problems;
}

std::vector<std::string> RedisOptions::Validate() const {
  std::vector<std::string> sentences;
  for (Problem& problem : Problems()) sentences.push_back(std::move(problem.what));
  return sentences;
}

}  // namespace headgate::store::redis
