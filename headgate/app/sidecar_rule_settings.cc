#include "headgate/app/sidecar_rule_settings.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "headgate/app/configuration.h"

namespace headgate::app {
namespace {

constexpr uint64_t kBucketsMax = uint64_t{1} << 36;

// As the settings of a server, which the shared store is made for.
void ReadStore(const SidecarFlags& flags, FlagReader& reader, SidecarRuleSettings& settings) {
  if (flags.store.empty()) return;
  Configuration server;
  server.settings = settings.engine;
  Settings& engine = server.settings;
  engine.store = flags.store;
  server.origins["store"] = {.place = "--store"};
  engine.store_password_file = flags.store_password_file;
  server.origins["store_password_file"] = {.place = "--store-password-file"};
  if (flags.store_timeout) {
    engine.store_timeout = reader.Time("--store-timeout", *flags.store_timeout);
    server.origins["store_timeout"] = {.place = "--store-timeout"};
  }
  if (flags.on_store_failure) {
    reader.Choice("--on-store-failure", *flags.on_store_failure, {"local", "allow", "deny"});
    engine.on_store_failure = *flags.on_store_failure;
    server.origins["on_store_failure"] = {.place = "--on-store-failure"};
  }
  UseDefaultsOfStore(server);
  settings.store = ReadStoreSettings(server);
  if (!server.problems.empty()) {
    const ConfigurationProblem& problem = server.problems.front();
    const std::string& place = problem.where.place;
    reader.Refuse(place.empty() ? problem.what : fmt::format("{}: {}", place, problem.what),
                  problem.hint);
  }
  settings.engine = std::move(engine);
}

}  // namespace

SidecarRuleSettings ReadRules(const SidecarFlags& flags, FlagReader& reader) {
  SidecarRuleSettings settings;
  Settings& engine = settings.engine;
  engine.rules = flags.rules;
  engine.rule = flags.rule;
  engine.auth = flags.mappings;
  engine.max_buckets = reader.Number("--max-buckets", flags.max_buckets, kBucketsMax);
  if (!flags.rules.empty() || !flags.rule.empty()) {
    ReadStore(flags, reader, settings);
    return settings;
  }
  engine.max_buckets = engine.max_limits = 1;  // nothing is counted
  if (!flags.mappings.empty()) {
    reader.Refuse("--mappings without rules",
                  "add --rules PATH, or --rule TEXT; mappings say which rule a request meets");
  }
  if (!flags.store.empty()) {
    reader.Refuse("--store without rules",
                  "add --rules PATH, or --rule TEXT; the shares of clients are counted in this "
                  "process");
  }
  return settings;
}

}  // namespace headgate::app
