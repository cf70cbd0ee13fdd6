#include "headgate/observe/catalog.h"

namespace headgate::observe {
namespace {

constexpr auto kCounter = MetricType::kCounter;
constexpr auto kGauge = MetricType::kGauge;
constexpr auto kHistogram = MetricType::kHistogram;

constexpr std::array<MetricSpec, kMetricCount> kCatalog = {{
    // Deciding
    {Metric::kDecisions,
     "headgate_decisions_total",
     kCounter,
     "decisions",
     "Descriptors decided, by the rule that applied and what came of it. Rule empty: no rule "
     "applied (outcome "
     "`no_rule`), or the descriptor brought a limit that overrides the rules (any other outcome); "
     "rule `CL.THROTTLE`: "
     "a "
     "limit that the client brought; domain `other`: a domain without rules, or beyond the cap on "
     "series.",
     {"domain", "rule", "outcome"}},
    {Metric::kSeries, "headgate_series", kGauge, "series",
     "Series of headgate_decisions_total in use. At 2000 further ones are counted under `other`."},
    {Metric::kSeriesDropped, "headgate_series_dropped_total", kCounter, "decisions",
     "Decisions that were not counted under a series of their own, because of the cap on series."},
    {Metric::kRequests,
     "headgate_requests_total",
     kCounter,
     "requests",
     "Requests answered, by front. One request has one or more descriptors.",
     {"front"}},
    {Metric::kProtocolErrors,
     "headgate_protocol_errors_total",
     kCounter,
     "errors",
     "Requests refused because they broke their front's protocol or its bounds.",
     {"front"}},
    {Metric::kBatchSeconds,
     "headgate_batch_seconds",
     kHistogram,
     "seconds",
     "Time from the bytes of a batch of requests to its answers: what was decidable in one read. "
     "Without the time that "
     "it waited for the shared store.",
     {"front"}},
    {Metric::kWaitSeconds,
     "headgate_wait_seconds",
     kHistogram,
     "seconds",
     "Of batches of requests that had to wait for the shared store: the whole time from their "
     "bytes to their answers.",
     {"front"}},

    // Memory
    {Metric::kBuckets, "headgate_buckets", kGauge, "buckets", "Buckets in memory."},
    {Metric::kBucketsMax, "headgate_buckets_max", kGauge, "buckets",
     "The most buckets that are remembered."},
    {Metric::kEvictions, "headgate_evictions_total", kCounter, "buckets",
     "Buckets forgotten while they still counted something, because memory was full. Raise "
     "max_buckets when it grows."},
    {Metric::kEvictedRequests, "headgate_evicted_requests_total", kCounter, "requests",
     "What evicted buckets had counted: requests that may pass once more."},
    {Metric::kHitBlocks, "headgate_hit_blocks", kGauge, "blocks",
     "Blocks of four hits that sliding_window_log holds in memory."},
    {Metric::kHitBlocksMax, "headgate_hit_blocks_max", kGauge, "blocks",
     "The most blocks of hits that are held."},
    {Metric::kHitsRefused, "headgate_hits_refused_total", kCounter, "requests",
     "Requests denied because memory for the hits of sliding_window_log was full."},
    {Metric::kLimits, "headgate_limits", kGauge, "limits",
     "Different limits in use by rules and by live buckets, those that requests brought included."},
    {Metric::kClientLimits, "headgate_client_limits", kGauge, "limits",
     "Different limits in use that requests brought (CL.THROTTLE, overrides)."},
    {Metric::kClientLimitsForgotten, "headgate_client_limits_forgotten_total", kCounter, "limits",
     "Limits that requests brought and that made way for others, with their buckets. Raise "
     "max_limits when it grows."},

    // Snapshots
    {Metric::kSnapshotWrites,
     "headgate_snapshot_writes_total",
     kCounter,
     "snapshots",
     "Snapshots written, by result: written, failed.",
     {"result"}},
    {Metric::kSnapshotAge, "headgate_snapshot_age_seconds", kGauge, "seconds",
     "Age of the last snapshot written or restored: what a crash would forget."},
    {Metric::kSnapshotRestores,
     "headgate_snapshot_restores_total",
     kCounter,
     "snapshots",
     "Snapshots found at start, by result: restored, absent, or why it was refused (corrupt, "
     "newer, unreadable).",
     {"result"}},
    {Metric::kBucketsRebased, "headgate_buckets_rebased_total", kCounter, "buckets",
     "Restored buckets that were ahead of the clock and were moved to it."},
    {Metric::kSnapshotBucketsLeftOut, "headgate_snapshot_buckets_left_out_total", kCounter,
     "buckets",
     "Buckets of the snapshot that were not restored, because max_limits had no room for their "
     "limits."},

    // Rules
    {Metric::kRules, "headgate_rules", kGauge, "rules", "Rules in force."},
    {Metric::kRuleReloads,
     "headgate_rule_reloads_total",
     kCounter,
     "reloads",
     "Changes of the rules that were read, by result: loaded, refused. A refused one leaves the "
     "rules as they were.",
     {"result"}},
    {Metric::kRuleProblems, "headgate_rule_problems", kGauge, "problems",
     "Problems in the rules as last read; 0 when they are the rules in force."},
    {Metric::kRulesAge, "headgate_rules_age_seconds", kGauge, "seconds",
     "Time since the rules in force were loaded."},
    {Metric::kWatchPolling, "headgate_watch_polling", kGauge, "watches",
     "Rule sources that are looked at every second because the system refused to watch them."},
    {Metric::kWatchFailures, "headgate_watch_failures_total", kCounter, "failures",
     "Times that the system refused to watch a rule source or lost its events."},

    // The store that instances share
    {Metric::kSharedDecisions,
     "headgate_shared_decisions_total",
     kCounter,
     "decisions",
     "Decisions about limits that instances share, by mode: exact (one step at the store), leased, "
     "and, where the "
     "store "
     "could not be asked, local (this instance's share), open (allowed) and closed (refused).",
     {"mode"}},
    {Metric::kInstances, "headgate_instances", kGauge, "instances",
     "Instances that share the store, as last heard; this many shares a limit has where the store "
     "cannot be asked, "
     "unless store_instances is set."},
    {Metric::kLeaseAsks, "headgate_lease_asks_total", kCounter, "messages",
     "Messages to the store that asked for a lease, or reported or returned one."},
    {Metric::kLeasedRequests,
     "headgate_leased_requests_total",
     kCounter,
     "requests",
     "Requests that leases allowed for, by event: granted, spent, returned (unspent, as the store "
     "has confirmed), "
     "expired (unspent, and lost).",
     {"event"}},
    {Metric::kLeaseRequestsHeld, "headgate_lease_requests_held", kGauge, "requests",
     "Requests that the leases of this instance allow for, unspent: what is out on lease."},
    {Metric::kLeaseLateGrants, "headgate_lease_late_grants_total", kCounter, "leases",
     "Leases that came after their deadline and were thrown away."},
    {Metric::kLeaseKeysEvicted, "headgate_lease_keys_evicted_total", kCounter, "keys",
     "Keys that are followed no more, because others are asked for more often."},
    {Metric::kLeaseKeysNotFollowed, "headgate_lease_keys_not_followed_total", kCounter, "requests",
     "Requests for keys that found no place to be followed: each asked the store."},
    {Metric::kOutageDebts, "headgate_outage_debts", kGauge, "keys",
     "Keys whose requests were let through without the store and are to be taken from their shared "
     "buckets."},
    {Metric::kOutageRequests,
     "headgate_outage_requests_total",
     kCounter,
     "requests",
     "Requests let through without the store, by event: owed, settled (taken from the shared "
     "bucket afterwards), "
     "forgiven (the bucket had nothing left), forgotten (no place to remember them). What is in "
     "none of the last three "
     "time has paid.",
     {"event"}},
    {Metric::kStoreCalls,
     "headgate_store_calls_total",
     kCounter,
     "calls",
     "Calls of the shared store, by outcome: answered, unavailable (not done), timed_out and "
     "aborted (perhaps done), "
     "denied (it does not let us), refused (too many under way here), failed (our own error).",
     {"outcome"}},
    {Metric::kStoreCallSeconds, "headgate_store_call_seconds", kHistogram, "seconds",
     "Time that answered calls of the shared store took, second attempts and redirects included."},
    {Metric::kStoreRetries, "headgate_store_retries_total", kCounter, "calls",
     "Calls that were sent a second time, since the first was certainly not done."},
    {Metric::kStoreRedirects, "headgate_store_redirects_total", kCounter, "calls",
     "Calls that a server of the store sent on to another (MOVED, ASK)."},
    {Metric::kStoreBatchCalls, "headgate_store_batch_calls", kHistogram, "calls",
     "Calls that one write to the store carried."},
    {Metric::kStoreBreakersOpen, "headgate_store_breakers_open", kGauge, "breakers",
     "Servers of the store that are left alone because they failed, counted by each event loop."},
    {Metric::kStoreBreakerOpened, "headgate_store_breaker_opened_total", kCounter, "times",
     "Times that a server of the store was left alone because it failed."},
    {Metric::kStoreDisconnects, "headgate_store_disconnects_total", kCounter, "connections",
     "Connections to the store that ended or could not be had."},
    {Metric::kStoreShardsLearning, "headgate_store_shards_learning", kGauge, "shards",
     "Shards of the store that are learning: what they have may lack leases that are still being "
     "spent. Counted by "
     "each "
     "event loop."},
    {Metric::kStoreHistoryChanges,
     "headgate_store_history_changes_total",
     kCounter,
     "changes",
     "Breaks in the history of a shard, by what happened: restarted, promoted (a replica took "
     "over), replaced (another "
     "server at its address). Counted by each event loop.",
     {"event"}},
    {Metric::kStorePausesMissed, "headgate_store_pauses_missed_total", kCounter, "pauses",
     "Pauses of this machine that its clock missed, as the clock o"
     "f a server of the store tells; or steps of that clock. Leases that were held are dropped. "
     "Counted by each event "
     "loop."},
    {Metric::kStoreAlarms, "headgate_store_alarms_total", kCounter, "errors",
     "Errors of the store that somebody should look at: out of memory, busy with a script, no "
     "permission, not of the "
     "kind that is configured."},
    {Metric::kStoreBucketEvents,
     "headgate_store_bucket_events_total",
     kCounter,
     "buckets",
     "What happened to shared buckets: replaced_corrupt (the key held what is not ours), "
     "clock_reset (it was far ahead "
     "of the store's clock), script_failed (its script, or that of the heartbeat, ended with an "
     "error: a missing "
     "right, "
     "most likely), carried_over (its limit changed).",
     {"event"}},

    // Connections
    {Metric::kConnections, "headgate_connections", kGauge, "connections", "Open connections."},
    {Metric::kConnectionsAccepted, "headgate_connections_accepted_total", kCounter, "connections",
     "Connections accepted."},
    {Metric::kConnectionsRefused,
     "headgate_connections_refused_total",
     kCounter,
     "connections",
     "Connections refused with an error, by reason: total_limit, address_limit, admin_limit (the "
     "admin address has "
     "places of its own), no_files (out of file descriptors), protocol (not spoken on this "
     "address).",
     {"reason"}},
    {Metric::kAcceptErrors, "headgate_accept_errors_total", kCounter, "attempts",
     "Attempts to accept a connection that the system refused, mostly for want of file descriptors "
     "or memory. The "
     "connection is refused with a spare descriptor, or waits."},
    {Metric::kConnectionsClosed,
     "headgate_connections_closed_total",
     kCounter,
     "connections",
     "Connections that were closed on the client, by reason: protocol_error, request_timeout, "
     "idle_timeout, "
     "write_timeout, buffer_overflow (one connection's bound), buffer_budget (max_buffer_bytes, "
     "the bound of all), "
     "drain_cutoff.",
     {"reason"}},
    {Metric::kSessions,
     "headgate_sessions_total",
     kCounter,
     "connections",
     "Connections by the protocol that their first bytes spoke.",
     {"protocol"}},
    {Metric::kBufferBytes, "headgate_buffer_bytes", kGauge, "bytes",
     "Memory for unfinished requests and unread answers, of connections that hold more than 16 KiB "
     "of it. Beyond "
     "max_buffer_bytes the largest and slowest are closed."},
    {Metric::kReceivedBytes, "headgate_received_bytes_total", kCounter, "bytes",
     "Bytes read from clients."},
    {Metric::kSentBytes, "headgate_sent_bytes_total", kCounter, "bytes",
     "Bytes written to clients."},

    // The process
    {Metric::kLogLinesDropped, "headgate_log_lines_dropped_total", kCounter, "lines",
     "Log lines left out because their event came too often."},
    {Metric::kClockAhead, "headgate_clock_ahead_seconds", kGauge, "seconds",
     "How far the wall clock is ahead of the clock that decisions use, which follows it by at most "
     "500 ppm."},
    {Metric::kUptime, "headgate_uptime_seconds", kGauge, "seconds",
     "Time since the process started."},
    {Metric::kBuildInfo,
     "headgate_build_info",
     kGauge,
     "builds",
     "1; the label says which build this is.",
     {"version"}},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kCatalog.size(); ++i) {
    if (static_cast<size_t>(kCatalog[i].metric) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "the catalogue has the order of enum Metric");

}  // namespace

std::string_view Name(MetricType type) {
  switch (type) {
    case kCounter:
      return "counter";
    case kGauge:
      return "gauge";
    case kHistogram:
      return "histogram";
  }
  __builtin_unreachable();
}

std::span<const MetricSpec, kMetricCount> Catalog() { return kCatalog; }

const MetricSpec& SpecOf(Metric metric) { return kCatalog[static_cast<size_t>(metric)]; }

}  // namespace headgate::observe
