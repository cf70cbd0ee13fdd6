#include "headgate/app/sidecar_share_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "headgate/app/sidecar_fleet.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"
#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

void ReadCapacity(const std::string& text, FlagReader& reader, share::ShareOptions& share) {
  if (text == "auto") {
    share.find_capacity.emplace();
    return;
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), share.pool.capacity);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    reader.Refuse(text.empty()
                      ? "--capacity is not given"
                      : fmt::format("--capacity {} is not a whole number", rule::Quote(text)),
                  "--capacity 40 lets 40 requests through in each --cycle; --capacity auto finds "
                  "how many the upstream can take");
  }
}

// The clients of a fleet's pool are in one value of a store, of which ZooKeeper and DynamoDB take
// some hundred kilobytes.
constexpr uint64_t kFleetClientsMax = 1024;
constexpr size_t kFleetClientIdBytesMax = 64;
constexpr size_t kPoolNameBytesMax = 64;

}  // namespace

std::optional<algorithm::Ratio> ParsePercentage(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  uint32_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || whole > 100) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  uint32_t tenths = 0;
  if (!rest.empty()) {
    if (rest.size() != 2 || rest[0] != '.' || !base::IsDigit(rest[1])) return std::nullopt;
    tenths = static_cast<uint32_t>(rest[1] - '0');
  }
  const uint32_t numerator = whole * 10 + tenths;
  if (numerator > 1000) return std::nullopt;
  return algorithm::Ratio{.numerator = numerator, .denominator = 1000};
}

share::ShareOptions ReadShare(const SidecarFlags& flags, FlagReader& reader) {
  share::ShareOptions share;
  algorithm::FairShareOptions& pool = share.pool;
  ReadCapacity(flags.capacity, reader, share);
  pool.cycle = reader.Time("--cycle", flags.cycle);
  const auto reservation = ParsePercentage(flags.reservation);
  if (!reservation) {
    reader.Refuse(
        fmt::format("--reservation {} is not a percentage", rule::Quote(flags.reservation)),
        "--reservation 10%");
  }
  pool.reservation = reservation.value_or(algorithm::Ratio{});
  pool.on_new_client =
      reader.Choice("--on-new-client", flags.on_new_client, {"redivide", "restart"}) == 0
          ? algorithm::OnNewClient::kRedivide
          : algorithm::OnNewClient::kRestart;
  pool.reclaim = reader.Choice("--reclaim", flags.reclaim, {"next_cycle", "at_once"}) == 0
                     ? algorithm::Reclaim::kNextCycle
                     : algorithm::Reclaim::kAtOnce;
  pool.clients_max =
      static_cast<uint32_t>(reader.Number("--clients", flags.clients, algorithm::kFairClientsMax));
  share.mode = reader.Choice("--mode", flags.mode, {"enforce", "passthrough"}) == 0
                   ? share::Mode::kEnforce
                   : share::Mode::kPassthrough;
  if (flags.anonymous) {
    share.without_id = share::WithoutId::kShareOne;
    share.anonymous = *flags.anonymous;
  }
  share.secret = base::RandomHashSecret();
  if (!reader.ok()) return share;
  if (const absl::Status status = share.Validate(); !status.ok())
    reader.Refuse(std::string(status.message()), "`headgate help sidecar` explains each flag");
  return share;
}

std::string ReadFleet(const SidecarFlags& flags, FlagReader& reader, share::ShareOptions& share) {
  if (reader.Choice("--scope", flags.scope, {"replica", "fleet"}) == 0) {
    if (flags.pool)
      reader.Refuse("--pool without --scope fleet", "add --scope fleet, or remove it");
    return "";
  }
  const std::string pool = flags.pool.value_or("default");
  if (pool.empty() || pool.size() > kPoolNameBytesMax) {
    reader.Refuse(fmt::format("--pool has from 1 to {} bytes", kPoolNameBytesMax),
                  "instances with the same name share a pool");
  }
  if (share.find_capacity) {
    reader.Refuse("--scope fleet with --capacity auto",
                  "a replica can find the capacity of its own upstream only; name the fleet's, for "
                  "example --capacity 400");
  }
  if (flags.clients > kFleetClientsMax) {
    reader.Refuse(fmt::format("--clients is at most {} with --scope fleet", kFleetClientsMax),
                  "all clients of the pool are in one value of the store");
  }
  share.client_id_bytes_max = kFleetClientIdBytesMax;
  share.secret = SecretOfPool(pool);
  return pool;
}

}  // namespace headgate::app
