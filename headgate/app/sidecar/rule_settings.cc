#include "headgate/app/sidecar/rule_settings.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "headgate/app/settings/configuration.h"

namespace headgate::app {
namespace {

constexpr uint64_t kBucketsMax = uint64_t{1} << 36;

// Reads the store as `headgate serve` does, into settings of a server.
void ReadStore(const GivenValues& given, FlagReader& reader, SidecarRuleSettings& settings) {
  Configuration server;
  server.settings = std::move(settings.engine);
  Apply(given, server);
  UseDefaultsOfStore(server);
  settings.store = ReadStoreSettings(server);
  if (!server.problems.empty()) {
    const ConfigurationProblem& problem = server.problems.front();
    const std::string& place = problem.where.place;
    reader.Refuse(place.empty() ? problem.what : fmt::format("{}: {}", place, problem.what),
                  problem.hint);
  }
  settings.engine = std::move(server.settings);
}

// The values of the flags of the store; empty without --store.
GivenValues GivenStore(const SidecarFlags& flags, FlagReader& reader) {
  auto given = flags.store.Take();
  if (!given.ok()) {
    reader.Refuse(std::string(given.status().message()), "give it once");
    return {};
  }
  if (given->empty() || given->contains("store")) return *std::move(given);
  reader.Refuse(fmt::format("{} without --store", given->begin()->second.origin.place),
                "add --store URL, or remove it");
  return {};
}

}  // namespace

SidecarRuleSettings ReadRules(const SidecarFlags& flags, FlagReader& reader) {
  SidecarRuleSettings settings;
  Settings& engine = settings.engine;
  engine.rules = flags.rules;
  engine.rule = flags.rule;
  engine.auth = flags.mappings;
  engine.max_buckets = reader.Number("--max-buckets", flags.max_buckets, kBucketsMax);
  const GivenValues store = GivenStore(flags, reader);
  const bool is_fleet = flags.scope == "fleet";
  if (is_fleet && store.empty())
    reader.Refuse("--scope fleet without --store", "add --store redis://HOST:PORT");
  if (!flags.rules.empty() || !flags.rule.empty()) {
    if (!store.empty()) ReadStore(store, reader, settings);
    return settings;
  }
  engine.max_buckets = engine.max_limits = 1;  // nothing is counted
  if (is_fleet && !store.empty()) ReadStore(store, reader, settings);
  if (!flags.mappings.empty()) {
    reader.Refuse("--mappings without rules",
                  "add --rules PATH, or --rule TEXT; mappings say which rule a request meets");
  }
  if (!store.empty() && !is_fleet) {
    reader.Refuse("--store without rules",
                  "add --rules PATH or --rule TEXT, or --scope fleet: replicas share the pool");
  }
  return settings;
}

}  // namespace headgate::app
