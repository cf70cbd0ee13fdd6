#include "headgate/app/sidecar/rule_settings.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/watch_settings.h"
#include "headgate/app/sidecar/settings.h"

namespace headgate::app {
namespace {

constexpr uint64_t kBucketsMax = uint64_t{1} << 36;

// The values of flags that are also settings of `headgate serve`. They have no effect without the
// flag `main`, so they are refused without it.
GivenValues Given(const SettingFlags& flags, const std::string& main, std::string_view example,
                  FlagReader& reader) {
  auto given = flags.Take();
  if (!given.ok()) {
    reader.Refuse(std::string(given.status().message()), "give it once");
    return {};
  }
  if (given->empty() || given->contains(main)) return *std::move(given);
  reader.Refuse(fmt::format("{} without --{}", given->begin()->second.origin.place, main),
                fmt::format("add {}, or remove it", example));
  return {};
}

// Reads these values as `headgate serve` does.
void ReadAsServer(const GivenValues& given, FlagReader& reader, Settings& settings,
                  const std::function<void(Configuration&)>& check) {
  Configuration server;
  server.settings = std::move(settings);
  Apply(given, server);
  check(server);
  if (!server.problems.empty()) {
    const ConfigurationProblem& problem = server.problems.front();
    const std::string& place = problem.where.place;
    reader.Refuse(place.empty() ? problem.what : fmt::format("{}: {}", place, problem.what),
                  problem.hint);
  }
  settings = std::move(server.settings);
}

}  // namespace

SidecarRuleSettings ReadRules(const SidecarFlags& flags, FlagReader& reader) {
  SidecarRuleSettings settings;
  Settings& engine = settings.engine;
  engine.rules = flags.rules;
  engine.rule = flags.rule;
  engine.merge_domains = flags.merge_domains ? "yes" : "no";
  engine.auth = flags.mappings;
  engine.max_buckets = reader.Number("--max-buckets", flags.max_buckets, kBucketsMax);
  ReadAsServer(Given(flags.watch, "watch", "--watch zk://HOST:PORT/path", reader), reader, engine,
               CheckWatch);
  const GivenValues store = Given(flags.store, "store", "--store URL", reader);
  const auto read_store = [&] {
    if (store.empty()) return;
    ReadAsServer(store, reader, engine, [&](Configuration& server) {
      UseDefaultsOfStore(server);
      settings.store = ReadStoreSettings(server);
    });
  };
  const bool is_fleet = flags.scope == "fleet";
  if (is_fleet && store.empty())
    reader.Refuse("--scope fleet without --store", "add --store redis://HOST:PORT");
  if (HasRules(engine)) {
    read_store();
    return settings;
  }
  engine.max_buckets = engine.max_limits = 1;  // nothing is counted
  if (is_fleet) read_store();
  if (!flags.mappings.empty()) {
    reader.Refuse("--mappings without rules",
                  "add --rules PATH, --rule TEXT or --watch URL; mappings say which rule a request "
                  "meets");
  }
  if (!store.empty() && !is_fleet) {
    reader.Refuse(
        "--store without rules",
        "add --rules PATH, --rule TEXT or --watch URL, or --scope fleet: replicas share the "
        "pool");
  }
  return settings;
}

}  // namespace headgate::app
