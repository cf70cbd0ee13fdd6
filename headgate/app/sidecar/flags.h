// The flags of `headgate sidecar`, as they are given: nothing of them is checked here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/fair_share_options.h"
#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/flag_sources.h"
#include "headgate/app/settings/setting_flags.h"
#include "headgate/app/settings/settings.h"
#include "headgate/app/sidecar/tls.h"
#include "headgate/capacity/capacity_controller.h"

namespace headgate::app {

struct SidecarFlags {
  SourceFlags sources;
  std::vector<std::string> listen;
  SidecarTlsFlags tls;
  std::string admin_listen = "127.0.0.1:8081";
  std::string credential_file;
  std::vector<std::string> known_host;
  std::string upstream;
  std::string upstream_resolve = "5s";
  std::string capacity;
  std::string cycle = "10s";
  std::string reservation = "10%";
  std::string on_new_client = "redivide";
  std::string lending = "proportional";
  std::string reclaim = "next_cycle";
  std::string minimum_cycle;  // empty: a tenth of the cycle
  uint64_t leave_after = algorithm::FairShareOptions{}.leave_after_cycles;
  uint64_t limit_min = capacity::CapacityOptions{}.limit_min;
  uint64_t limit_max = capacity::CapacityOptions{}.limit_max;
  std::vector<std::string> client_weight;
  std::string client_header = "X-Client-Id";
  std::optional<std::string> anonymous;
  uint64_t clients = 1024;
  std::vector<std::string> cors_origin;
  std::string preflights = "pass";
  std::string mode = "enforce";
  std::string scope = "replica";
  std::optional<std::string> pool;
  std::vector<std::string> rules;
  std::vector<std::string> rule;
  std::string mappings;
  SettingFlags watch{IsOfWatch};
  bool merge_domains = false;
  uint64_t max_buckets = Settings{}.max_buckets;
  SettingFlags store{IsOfStore};
  std::string rate_limit_fields = "draft";
  std::string refusal_file;
  std::string x_forwarded = "append";
  std::string forwarded = "off";
  std::string via = "headgate";
  bool no_reason = false;
  std::string abandoned = "cancel";
  std::string connect_timeout = "5s";
  std::string answer_timeout = "1m";
  std::string idle_timeout = "5m";
  std::string tunnel_idle_timeout = "1h";
  std::string queue_timeout = "5s";
  std::string drain_timeout = "10s";
  std::optional<std::string> handover;
  std::string check_path;
  std::string check_interval = "5s";
  uint64_t upstream_connections = 512;
  uint64_t queue = 1024;
  uint64_t max_connections = 10'000;
  uint64_t max_connections_per_address = 0;
  uint64_t threads = 0;
  std::string log_level = "info";
  std::string log_format = "text";
  std::optional<std::string> plan;
  std::optional<std::string> plan_client;
};

// The flags that are not settings: they have no place in a settings file or in the environment.
std::vector<std::string_view> OnlyFlagsOfSidecar();

// The flags receive their values when the arguments are parsed.
ArgumentSpec SpecOf(SidecarFlags& flags);

}  // namespace headgate::app
