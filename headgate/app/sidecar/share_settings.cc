#include "headgate/app/sidecar/share_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "headgate/app/sidecar/fleet.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

void ReadCapacity(Configuration& configuration, share::ShareOptions& share) {
  const std::string& text = configuration.settings.capacity;
  if (text == "auto") {
    share.find_capacity.emplace();
    return;
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), share.pool.capacity);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    configuration.Refuse(
        text.empty() ? "--capacity is not given"
                     : fmt::format("--capacity {} is not a whole number", rule::Quote(text)),
        "--capacity 40 lets 40 requests through in each --cycle; --capacity auto finds how many "
        "the upstream can take");
  }
}

void ReadLimits(Configuration& configuration, share::ShareOptions& share) {
  const Settings& settings = configuration.settings;
  capacity::CapacityOptions limits;
  const bool are_given =
      settings.limit_min != limits.limit_min || settings.limit_max != limits.limit_max;
  if (!share.find_capacity) {
    if (are_given)
      configuration.Refuse("--limit-min and --limit-max need --capacity auto",
                           "they bound the requests in flight while the capacity is found");
    return;
  }
  if (settings.limit_min > settings.limit_max) {
    return configuration.Refuse(
        fmt::format("--limit-min {} and --limit-max {} are not bounds: the first is larger than "
                    "the second",
                    settings.limit_min, settings.limit_max),
        "--limit-min 8 --limit-max 200");
  }
  limits.limit_min = static_cast<uint32_t>(settings.limit_min);
  limits.limit_max = static_cast<uint32_t>(settings.limit_max);
  limits.limit_first = std::clamp(limits.limit_first, limits.limit_min, limits.limit_max);
  share.find_capacity = limits;
}

void ReadCycles(Configuration& configuration, algorithm::FairShareOptions& pool) {
  const Settings& settings = configuration.settings;
  const std::string& minimum = settings.minimum_cycle;
  pool.cycle = settings.cycle;
  pool.leave_after_cycles = static_cast<uint32_t>(settings.leave_after);
  if (minimum.empty()) return;
  const auto time = rule::ParseDuration(minimum);
  if (!time.ok() || *time < std::chrono::milliseconds(1)) {
    return configuration.Refuse(
        fmt::format("--minimum-cycle {} is not a duration from 1ms", rule::Quote(minimum)),
        "for example --minimum-cycle 2s");
  }
  pool.minimum_cycle = *time;
  if (pool.minimum_cycle > pool.cycle) {
    configuration.Refuse(fmt::format("--minimum-cycle {} is longer than --cycle {}", minimum,
                                     rule::FormatDuration(settings.cycle)),
                         "no cycle is cut short before this time; without it, a tenth of --cycle");
  }
}

void ReadWeights(Configuration& configuration, share::ShareOptions& share) {
  constexpr std::string_view kHint = "--client-weight ann=3: ann gets three times an even share";
  absl::flat_hash_set<std::string> seen;
  for (const std::string& text : configuration.settings.client_weight) {
    auto weight = ParseClientWeight(text);
    if (!weight.ok()) {
      return configuration.Refuse(fmt::format("--client-weight {} {}", rule::Quote(text),
                                              std::string(weight.status().message())),
                                  kHint);
    }
    if (!seen.insert(weight->client).second) {
      return configuration.Refuse(
          fmt::format("--client-weight is given twice for {}", rule::Quote(weight->client)), kHint);
    }
    share.weights.push_back(*std::move(weight));
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

absl::StatusOr<share::ClientWeight> ParseClientWeight(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos) return absl::InvalidArgumentError("has no '=' before a weight");
  if (equals == 0) return absl::InvalidArgumentError("names no client");
  share::ClientWeight weight{.client = std::string(text.substr(0, equals)), .weight = 0};
  const std::string_view number = text.substr(equals + 1);
  const char* const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, weight.weight);
  if (error != std::errc() || end != last || weight.weight < 1 ||
      weight.weight > algorithm::kFairWeightMax) {
    return absl::InvalidArgumentError(
        fmt::format("does not end with a whole number from 1 to {}", algorithm::kFairWeightMax));
  }
  return weight;
}

share::ShareOptions ReadShare(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  share::ShareOptions share;
  algorithm::FairShareOptions& pool = share.pool;
  ReadCapacity(configuration, share);
  ReadLimits(configuration, share);
  ReadCycles(configuration, pool);
  const auto reservation = ParsePercentage(settings.reservation);
  if (!reservation) {
    configuration.Refuse(
        fmt::format("--reservation {} is not a percentage", rule::Quote(settings.reservation)),
        "--reservation 10%");
  }
  pool.reservation = reservation.value_or(algorithm::Ratio{});
  pool.on_new_client = settings.on_new_client == "redivide" ? algorithm::OnNewClient::kRedivide
                                                            : algorithm::OnNewClient::kRestart;
  pool.lending = settings.lending == "proportional" ? algorithm::Lending::kProportional
                                                    : algorithm::Lending::kMaxMin;
  pool.reclaim = settings.reclaim == "next_cycle" ? algorithm::Reclaim::kNextCycle
                                                  : algorithm::Reclaim::kAtOnce;
  pool.clients_max = static_cast<uint32_t>(settings.clients);
  share.mode = settings.mode == "enforce" ? share::Mode::kEnforce : share::Mode::kPassthrough;
  ReadWeights(configuration, share);
  if (!settings.anonymous.empty()) {
    share.without_id = share::WithoutId::kShareOne;
    share.anonymous = settings.anonymous;
  }
  share.secret = base::RandomHashSecret();
  if (!configuration.ok()) return share;
  if (const absl::Status status = share.Validate(); !status.ok())
    configuration.Refuse(std::string(status.message()),
                         "`headgate help sidecar --all` explains each setting");
  return share;
}

std::string ReadFleet(Configuration& configuration, share::ShareOptions& share) {
  const Settings& settings = configuration.settings;
  const std::string& pool = settings.pool;
  if (settings.scope == "replica") {
    if (pool != Settings{}.pool)
      configuration.Refuse("--pool without --scope fleet", "add --scope fleet, or remove it");
    return "";
  }
  if (pool.empty() || pool.size() > kPoolNameBytesMax) {
    configuration.Refuse(fmt::format("--pool has from 1 to {} bytes", kPoolNameBytesMax),
                         "instances with the same name share a pool");
  }
  if (share.find_capacity) {
    configuration.Refuse("--scope fleet with --capacity auto",
                         "a replica can find the capacity of its own upstream only; name the "
                         "fleet's, for example --capacity 400");
  }
  if (settings.clients > kFleetClientsMax) {
    configuration.Refuse(
        fmt::format("--clients is at most {} with --scope fleet", kFleetClientsMax),
        "all clients of the pool are in one value of the store");
  }
  share.client_id_bytes_max = kFleetClientIdBytesMax;
  share.secret = SecretOfPool(pool);
  return pool;
}

}  // namespace headgate::app
