#include "headgate/app/sidecar/flags.h"

namespace headgate::app {

std::vector<std::string_view> OnlyFlagsOfSidecar() {
  return {"--config", "--print-config", "--json", "--plan", "--plan-client"};
}

ArgumentSpec SpecOf(SidecarFlags& flags) {
  ArgumentSpec spec{.command = "sidecar",
                    .flags = {{"--listen", &flags.listen},
                              {"--admin-listen", &flags.admin_listen},
                              {"--credential-file", &flags.credential_file},
                              {"--known-host", &flags.known_host},
                              {"--upstream", &flags.upstream},
                              {"--upstream-resolve", &flags.upstream_resolve},
                              {"--capacity", &flags.capacity},
                              {"--cycle", &flags.cycle},
                              {"--reservation", &flags.reservation},
                              {"--on-new-client", &flags.on_new_client},
                              {"--lending", &flags.lending},
                              {"--reclaim", &flags.reclaim},
                              {"--minimum-cycle", &flags.minimum_cycle},
                              {"--leave-after", &flags.leave_after},
                              {"--limit-min", &flags.limit_min},
                              {"--limit-max", &flags.limit_max},
                              {"--client-weight", &flags.client_weight},
                              {"--scope", &flags.scope},
                              {"--pool", &flags.pool},
                              {"--client-header", &flags.client_header},
                              {"--anonymous", &flags.anonymous},
                              {"--clients", &flags.clients},
                              {"--cors-origin", &flags.cors_origin},
                              {"--preflights", &flags.preflights},
                              {"--mode", &flags.mode},
                              {"--rules", &flags.rules},
                              {"--rule", &flags.rule},
                              {"--merge-domains", &flags.merge_domains},
                              {"--mappings", &flags.mappings},
                              {"--max-buckets", &flags.max_buckets},
                              {"--rate-limit-fields", &flags.rate_limit_fields},
                              {"--refusal-file", &flags.refusal_file},
                              {"--x-forwarded", &flags.x_forwarded},
                              {"--forwarded", &flags.forwarded},
                              {"--via", &flags.via},
                              {"--no-reason", &flags.no_reason},
                              {"--abandoned", &flags.abandoned},
                              {"--connect-timeout", &flags.connect_timeout},
                              {"--answer-timeout", &flags.answer_timeout},
                              {"--idle-timeout", &flags.idle_timeout},
                              {"--tunnel-idle-timeout", &flags.tunnel_idle_timeout},
                              {"--queue-timeout", &flags.queue_timeout},
                              {"--drain-timeout", &flags.drain_timeout},
                              {"--handover", &flags.handover},
                              {"--check-path", &flags.check_path},
                              {"--check-interval", &flags.check_interval},
                              {"--upstream-connections", &flags.upstream_connections},
                              {"--queue", &flags.queue},
                              {"--max-connections", &flags.max_connections},
                              {"--max-connections-per-address", &flags.max_connections_per_address},
                              {"--threads", &flags.threads},
                              {"--log-level", &flags.log_level},
                              {"--log-format", &flags.log_format},
                              {"--plan", &flags.plan},
                              {"--plan-client", &flags.plan_client}}};
  flags.sources.AddTo(spec.flags);
  flags.tls.AddTo(spec.flags);
  flags.watch.AddTo(spec.flags);
  flags.store.AddTo(spec.flags);
  return spec;
}

}  // namespace headgate::app
