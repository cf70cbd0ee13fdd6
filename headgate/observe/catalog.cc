// The table of all metrics. One file because it is one table.
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
     "Descriptors decided, by rule and outcome. The rule is empty if no rule applied (outcome "
     "`no_rule`) or if the descriptor brought a limit that overrides the rules (any other "
     "outcome); it is `CL.THROTTLE` if the client brought the limit with that command or INCREX. "
     "The domain is `other` if it has no rules, or beyond the cap on series.",
     {"domain", "rule", "outcome"}},
    {Metric::kPassthrough, "headgate_passthrough", kGauge, "processes",
     "1 while nothing is refused (passthrough): decisions are counted as they would be without "
     "it."},
    {Metric::kRolloutDecisions,
     "headgate_rollout_decisions_total",
     kCounter,
     "decisions",
     "Requests to rules with a roll-out in shadow, by the rule's decision and the roll-out's. "
     "Requests whose bucket could not be asked are left out. From 256 such rules on, the "
     "others "
     "are counted together.",
     {"domain", "rule", "current", "rollout"}},
    {Metric::kGivenLimits,
     "headgate_given_limits_total",
     kCounter,
     "requests",
     "Requests that brought a limit for their rule (limit_from), by how it was understood. `plan`: "
     "the "
     "name of a plan; `number`; `capped`: a number above the rule's max; `unknown`: neither, so "
     "the "
     "rule's own limit counted.",
     {"event"}},
    {Metric::kPermits,
     "headgate_permits_total",
     kCounter,
     "permits",
     "Permits of rules that limit concurrency, by event. `taken` and `given_back`: by "
     "requests that end here; `ended`: before such a request did, because the ttl of the rule is "
     "too short or the store was not reached; `acquired` and `released`: by id; `unknown`: an id "
     "was released that held none; `refused`: no permit was free; `looked_at`: by a front that "
     "cannot give one back; `expired`: found to have ended without being given back. From 256 such "
     "rules on, the others are counted together.",
     {"domain", "rule", "event"}},
    {Metric::kPermitsHeld,
     "headgate_permits_held",
     kGauge,
     "permits",
     "Permits that requests in flight here hold. Those acquired by id are not among them.",
     {"domain", "rule"}},
    {Metric::kPermitsHere, "headgate_permits_in_memory", kGauge, "permits",
     "Permits in the memory of this process that have not ended: all of them, or with a shared "
     "store the permits that were given while it was unreachable."},
    {Metric::kPermitsNoRoom, "headgate_permits_no_room_total", kCounter, "requests",
     "Requests refused because the process kept as many permits, or keys with permits, as it may."},
    {Metric::kSeries, "headgate_series", kGauge, "series",
     "Series of headgate_decisions_total in use. From 2000 on, new ones are counted under "
     "`other`."},
    {Metric::kSeriesDropped, "headgate_series_dropped_total", kCounter, "decisions",
     "Decisions counted under `other` because of the cap on series."},
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
     "Requests refused because they violated the protocol of their front or its bounds.",
     {"front"}},
    {Metric::kBatchSeconds,
     "headgate_batch_seconds",
     kHistogram,
     "seconds",
     "Time from reading a batch of requests to its answers; a batch is all requests that one read "
     "completed. Time spent waiting for the shared store is not included.",
     {"front"}},
    {Metric::kWaitSeconds,
     "headgate_wait_seconds",
     kHistogram,
     "seconds",
     "Whole time from reading a batch to its answers, for batches that had to wait for the shared "
     "store.",
     {"front"}},

    // Memory
    {Metric::kBuckets, "headgate_buckets", kGauge, "buckets", "Buckets in memory."},
    {Metric::kBucketsMax, "headgate_buckets_max", kGauge, "buckets",
     "The most buckets that memory can hold (max_buckets)."},
    {Metric::kEvictions, "headgate_evictions_total", kCounter, "buckets",
     "Buckets evicted while still in use, because memory was full. Raise max_buckets if it grows."},
    {Metric::kEvictedRequests, "headgate_evicted_requests_total", kCounter, "requests",
     "Requests that evicted buckets had counted; as many more may be admitted."},
    {Metric::kHitBlocks, "headgate_hit_blocks", kGauge, "blocks",
     "Blocks of four hits that sliding_window_log holds in memory."},
    {Metric::kHitBlocksMax, "headgate_hit_blocks_max", kGauge, "blocks",
     "The most blocks of hits that memory can hold."},
    {Metric::kHitsRefused, "headgate_hits_refused_total", kCounter, "requests",
     "Requests denied because memory for the hits of sliding_window_log was full."},
    {Metric::kLimits, "headgate_limits", kGauge, "limits",
     "Different limits in use by rules and by live buckets, including limits that requests "
     "brought."},
    {Metric::kClientLimits, "headgate_client_limits", kGauge, "limits",
     "Different limits in use that requests brought (CL.THROTTLE, overrides)."},
    {Metric::kClientLimitsForgotten, "headgate_client_limits_forgotten_total", kCounter, "limits",
     "Limits brought by requests that were evicted, with their buckets, to make room for others. "
     "Raise max_limits if it grows."},

    // Snapshots
    {Metric::kSnapshotWrites,
     "headgate_snapshot_writes_total",
     kCounter,
     "snapshots",
     "Snapshots written, by result: written, failed.",
     {"result"}},
    {Metric::kSnapshotAge, "headgate_snapshot_age_seconds", kGauge, "seconds",
     "Age of the last snapshot written or restored; a crash would lose what was counted since."},
    {Metric::kSnapshotRestores,
     "headgate_snapshot_restores_total",
     kCounter,
     "snapshots",
     "Attempts to restore a snapshot at start, by result: restored, absent (no file), or the "
     "reason why the file was refused: corrupt, newer (a newer version), unreadable.",
     {"result"}},
    {Metric::kBucketsRebased, "headgate_buckets_rebased_total", kCounter, "buckets",
     "Restored buckets whose time was ahead of the clock, and was set back to it."},
    {Metric::kSnapshotBucketsLeftOut, "headgate_snapshot_buckets_left_out_total", kCounter,
     "buckets",
     "Buckets of the snapshot that were not restored because max_limits left no room for their "
     "limits."},

    // Rules
    {Metric::kRules, "headgate_rules", kGauge, "rules", "Rules in force."},
    {Metric::kRuleReloads,
     "headgate_rule_reloads_total",
     kCounter,
     "reloads",
     "Reads of changed rules, by result: loaded, refused. Refused rules leave the rules in force "
     "unchanged.",
     {"result"}},
    {Metric::kRuleProblems, "headgate_rule_problems", kGauge, "problems",
     "Problems in the rules as last read; 0 if they are in force."},
    {Metric::kRulesAge, "headgate_rules_age_seconds", kGauge, "seconds",
     "Time since the rules in force were loaded."},
    {Metric::kWatchPolling, "headgate_watch_polling", kGauge, "watches",
     "Rule sources that are polled every second because the system refused to watch them."},
    {Metric::kWatchFailures, "headgate_watch_failures_total", kCounter, "failures",
     "Times that the system refused to watch a rule source, or lost events of one."},
    {Metric::kConfigAge, "headgate_config_age_seconds", kGauge, "seconds",
     "Time since ZooKeeper's rules were last known to be current; 0 while they are, and for the "
     "first two seconds of silence."},
    {Metric::kWatchKept, "headgate_watch_kept_documents", kGauge, "documents",
     "Documents in ZooKeeper that stay in force because their deletion looks like an accident."},
    {Metric::kWatchReads, "headgate_watch_reads_total", kCounter, "reads",
     "Documents, and lists of documents, read from ZooKeeper."},
    {Metric::kWatchMissed, "headgate_watch_missed_changes_total", kCounter, "changes",
     "Changes in ZooKeeper that no watch told of, found by the comparison each minute."},
    {Metric::kRuleEdits,
     "headgate_rule_edits_total",
     kCounter,
     "edits",
     "Changes of rules over the admin address that were noted in the audit log, by outcome.",
     {"outcome"}},
    {Metric::kWatchInstances, "headgate_watch_instances", kGauge, "instances",
     "Instances that follow the rules in ZooKeeper, as last counted; 0 if they are not counted "
     "there."},

    // The store that instances share
    {Metric::kSharedDecisions,
     "headgate_shared_decisions_total",
     kCounter,
     "decisions",
     "Decisions about limits that instances share, by mode: exact (one atomic step at the store), "
     "leased, and, if the store could not be asked, local (this instance's share), open (allowed) "
     "or closed (refused).",
     {"mode"}},
    {Metric::kInstances, "headgate_instances", kGauge, "instances",
     "Instances that share the store, as last counted in the store or in ZooKeeper beside the "
     "rules, whichever is more. If the store cannot be asked, a limit is divided into this many "
     "shares, unless store_instances is set."},
    {Metric::kStoreClockOffset, "headgate_store_clock_offset_seconds", kGauge, "seconds",
     "How far this instance's clock is ahead of that of ZooKeeper's leader, or of DynamoDB "
     "(negative: behind), as last measured. DynamoDB's first answer tells it to half a second, and "
     "many answers tell it more closely. If it is beyond 30 ms for certain, decisions are "
     "corrected "
     "by it. Only with a strict store, where the instances' clocks decide."},
    {Metric::kLeaseAsks, "headgate_lease_asks_total", kCounter, "messages",
     "Messages to the store that asked for, reported on, or returned a lease."},
    {Metric::kLeasedRequests,
     "headgate_leased_requests_total",
     kCounter,
     "requests",
     "Requests that leases cover, by event: granted, spent, returned (unspent, confirmed by the "
     "store), expired (unspent when their bucket was full or their window over).",
     {"event"}},
    {Metric::kLeaseRequestsHeld, "headgate_lease_requests_held", kGauge, "requests",
     "Unspent requests in the leases of this instance that the store has not got back yet."},
    {Metric::kLeaseLateGrants, "headgate_lease_late_grants_total", kCounter, "leases",
     "Leases that arrived after their deadline and were discarded."},
    {Metric::kLeaseKeysEvicted, "headgate_lease_keys_evicted_total", kCounter, "keys",
     "Keys that lost their place in the lease table to keys that are asked for more often."},
    {Metric::kLeaseKeysNotFollowed, "headgate_lease_keys_not_followed_total", kCounter, "requests",
     "Requests for keys that found no place in the lease table; each asked the store."},
    {Metric::kOutageDebts, "headgate_outage_debts", kGauge, "keys",
     "Keys with requests that were admitted without the store and must still be taken from their "
     "shared buckets."},
    {Metric::kOutageRequests,
     "headgate_outage_requests_total",
     kCounter,
     "requests",
     "Requests admitted without the store, by event: owed, settled (charged to the shared bucket "
     "afterwards), forgotten (no room to remember them). Owed requests in neither of the other two "
     "were paid off by time.",
     {"event"}},
    {Metric::kStoreCalls,
     "headgate_store_calls_total",
     kCounter,
     "calls",
     "Calls to the shared store, by outcome: answered, unavailable (not executed), timed_out and "
     "aborted (possibly executed), denied (no permission), refused (too many calls in flight "
     "here), throttled (the store asks to slow down), failed (an error in Headgate's call).",
     {"outcome"}},
    {Metric::kStoreCallSeconds, "headgate_store_call_seconds", kHistogram, "seconds",
     "Time that answered calls to the shared store took, including retries and redirects."},
    {Metric::kStoreRetries, "headgate_store_retries_total", kCounter, "calls",
     "Calls that were sent a second time because the first was certainly not executed."},
    {Metric::kStoreLocks,
     "headgate_store_locks_total",
     kCounter,
     "events",
     "Locks of keys in the store, for rules with strict: lock, by event: taken, lost (the session "
     "ended, or another instance has written under a later lock), timed_out (requests that were "
     "refused because they waited for longer than store_lock_timeout).",
     {"event"}},
    {Metric::kStoreRedirects, "headgate_store_redirects_total", kCounter, "calls",
     "Calls that a server of the store redirected to another one (MOVED, ASK)."},
    {Metric::kStoreBatchCalls, "headgate_store_batch_calls", kHistogram, "calls",
     "Calls sent in one write to the store."},
    {Metric::kStoreBreakersOpen, "headgate_store_breakers_open", kGauge, "breakers",
     "Open circuit breakers: servers of the store that get no calls because they failed. Each "
     "event loop counts its own."},
    {Metric::kStoreBreakerOpened, "headgate_store_breaker_opened_total", kCounter, "times",
     "Times that a circuit breaker opened because a server of the store failed."},
    {Metric::kStoreDisconnects, "headgate_store_disconnects_total", kCounter, "connections",
     "Connections to the store that ended or could not be established."},
    {Metric::kStoreShardsLearning, "headgate_store_shards_learning", kGauge, "shards",
     "Shards of the store that are learning: their data may lack leases that are still being "
     "spent. Each event loop counts its own."},
    {Metric::kStoreHistoryChanges,
     "headgate_store_history_changes_total",
     kCounter,
     "changes",
     "Breaks in the history of a shard, by event: restarted, promoted (a replica took over), "
     "replaced (another server answers at its address). Each event loop counts its own.",
     {"event"}},
    {Metric::kStorePausesMissed, "headgate_store_pauses_missed_total", kCounter, "pauses",
     "Pauses of this machine that its clock missed, detected by comparison with a store server's "
     "clock; steps of that clock look the same. The leases held are dropped. Each event loop "
     "counts its own."},
    {Metric::kStoreAlarms, "headgate_store_alarms_total", kCounter, "errors",
     "Errors of the store that need an operator: out of memory, busy with a script, no permission, "
     "not the kind of store that is configured, or a clock that is too far away."},
    {Metric::kStoreBucketEvents,
     "headgate_store_bucket_events_total",
     kCounter,
     "buckets",
     "Events of shared buckets: damaged (a request failed because the value of its bucket cannot "
     "be read; on_store_failure decided it), replaced_corrupt (a strict store held a value with a "
     "right checksum that was not a bucket), clock_reset (the bucket was far ahead of the store's "
     "clock), script_failed (the script of a bucket or of the heartbeat failed, most likely "
     "because a right is missing), carried_over (the limit changed), removed (ZooKeeper: this "
     "instance deleted the node, because nobody had used it for long).",
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
     "admin address has a limit of its own), no_files (out of file descriptors), protocol (not "
     "spoken on this address), proxy_header (a trusted proxy sent no valid PROXY header in time).",
     {"reason"}},
    {Metric::kAcceptErrors, "headgate_accept_errors_total", kCounter, "attempts",
     "Attempts to accept a connection that failed, mostly because file descriptors or memory ran "
     "out. The connection is accepted with a spare descriptor and refused, or waits."},
    {Metric::kConnectionsClosed,
     "headgate_connections_closed_total",
     kCounter,
     "connections",
     "Connections that the server closed, by reason: protocol_error, tls_handshake (it failed), "
     "request_timeout, idle_timeout, write_timeout, buffer_overflow (the bound of one connection), "
     "buffer_budget "
     "(max_buffer_bytes, the bound of all together), drain_cutoff.",
     {"reason"}},
    {Metric::kSessions,
     "headgate_sessions_total",
     kCounter,
     "connections",
     "Connections by protocol, detected from their first bytes.",
     {"protocol"}},

    // Forward-auth
    {Metric::kAuthRequests,
     "headgate_auth_requests_total",
     kCounter,
     "requests",
     "Requests that proxies asked about, or that the sidecar has judged by rules, by outcome: "
     "allowed, unmatched, exempt, preflight, untrusted, "
     "refused, "
     "missing, invalid, no_rule, denied, unavailable.",
     {"outcome"}},
    {Metric::kTokensRefused,
     "headgate_tokens_refused_total",
     kCounter,
     "requests",
     "Requests with a JSON Web Token that was refused, by reason: too_long, not_three_parts, "
     "not_base64, header, critical, unnamed_key, signature, claims, bad_time, not_yet, issuer, "
     "audience, expired.",
     {"reason"}},
    {Metric::kAuthRepeated, "headgate_auth_repeated_total", kCounter, "requests",
     "Requests that got the answer of an earlier one with the same idempotency id; not counted "
     "again."},
    {Metric::kAuthForgotten, "headgate_auth_repeats_forgotten_total", kCounter, "requests",
     "Answers that were forgotten before their window ended, because there were too many. A "
     "repeated "
     "request is then counted twice."},
    {Metric::kAuthHeld, "headgate_auth_held", kGauge, "requests",
     "Requests whose answer is held until a queue lets them pass."},
    {Metric::kMappingReloads,
     "headgate_mapping_reloads_total",
     kCounter,
     "reloads",
     "Reads of changed mappings, by result: loaded, refused. Refused mappings leave those in force "
     "unchanged.",
     {"result"}},
    {Metric::kCertificateReloads,
     "headgate_certificate_reloads_total",
     kCounter,
     "reloads",
     "Reads of changed certificates, by result: loaded, refused. New connections get the "
     "certificates in force if new ones are refused.",
     {"result"}},
    {Metric::kUserReloads,
     "headgate_user_reloads_total",
     kCounter,
     "reloads",
     "Reads of the changed file of users, by result: loaded, refused. If it is refused, the users "
     "stay as they are.",
     {"result"}},
    {Metric::kLogins,
     "headgate_logins_total",
     kCounter,
     "logins",
     "Logins, by result: accepted, wrong (no such user, or another password), limited (too many "
     "wrong ones of this user from this address), busy (too many are being verified).",
     {"result"}},
    // The sidecar
    {Metric::kProxyRequests,
     "headgate_proxy_requests_total",
     kCounter,
     "requests",
     "Requests to the sidecar, by outcome: answered (by the upstream, completely), refused (429: "
     "its client's share was used up, for example), looping (508: it has passed through this "
     "sidecar too often), not_forwarded (Max-Forwards was 0), unreachable (502 or 504: no "
     "connection to the upstream), broken (502: "
     "the upstream closed the connection, or violated HTTP), too_slow "
     "(504), no_place (503: too many requests waited for a connection, or this one waited too "
     "long), slow_client (408), slow_reader (the client read nothing of the answer for "
     "--idle-timeout; over HTTP/2, it gave the stream no window), unsuitable (501: gRPC to an "
     "upstream without HTTP/2, or a tunnel to one that takes none over HTTP/2), cut_short (the "
     "answer ended in the middle, or over TLS without close_notify), malformed (400: an error in "
     "the body of the request), client_gone, misnamed "
     "(403: the name in the client's certificate cannot be an id).",
     {"outcome"}},
    {Metric::kProxyInFlight, "headgate_proxy_in_flight", kGauge, "requests",
     "Requests that the sidecar has let through and that have not ended."},
    {Metric::kProxyPreflights,
     "headgate_proxy_preflights_total",
     kCounter,
     "requests",
     "Preflights of browsers, by result: passed (without being counted in a share), counted (as "
     "other "
     "requests, because more than half of the connections to the upstream had preflights).",
     {"result"}},
    {Metric::kProxyRetries, "headgate_proxy_retries_total", kCounter, "attempts",
     "Further attempts for a request that the upstream had not processed."},
    {Metric::kProxyTunnels, "headgate_proxy_tunnels_total", kCounter, "requests",
     "Requests that became tunnels, for WebSocket for example."},
    {Metric::kHeldRefused, "headgate_proxy_held_refused_total", kCounter, "requests",
     "Requests that the queue of a rule would have held, answered 503 because as many were held as "
     "--queue says."},
    {Metric::kHeldLeft, "headgate_proxy_held_left_total", kCounter, "requests",
     "Requests whose client left while they were held by the queue of a rule."},
    {Metric::kLetThrough, "headgate_proxy_let_through_total", kCounter, "requests",
     "Requests that a rule refused and that passed because of mode passthrough."},
    {Metric::kSizeUnits,
     "headgate_size_units_total",
     kCounter,
     "units",
     "Units of rules with a cost by size, or a count by status, that were corrected when requests "
     "ended: taken (beyond "
     "the reserve), returned (in excess; they go back as far as they have not come back to the "
     "bucket by themselves), lapsed (in excess, but the limit has changed or the store could not "
     "be reached), forgotten (not taken, because the limit is gone or the store could not be "
     "reached).",
     {"event"}},
    {Metric::kHttp2Floods,
     "headgate_http2_floods_total",
     kCounter,
     "connections",
     "Connections of HTTP/2 that were closed because of a flood, by reason: resets, "
     "provoked (resets that the client caused), pings, settings, priorities, unknown_frames, "
     "window_updates, empty_data, continuations, fields.",
     {"reason"}},
    {Metric::kHttp2Refusals,
     "headgate_http2_refusals_total",
     kCounter,
     "requests",
     "Requests over HTTP/2 that were refused, by reason: malformed (their head is; the stream was "
     "reset), refused (answered with 417, 431 or 501), slow (the request or its answer took longer "
     "than request_timeout; the stream was reset).",
     {"reason"}},
    {Metric::kUpstreamSeconds, "headgate_upstream_seconds", kHistogram, "seconds",
     "Time from sending the head of a request to the head of its answer."},
    {Metric::kUpstreamConnections, "headgate_upstream_connections", kGauge, "connections",
     "Connections to upstreams, including ones that are being made."},
    {Metric::kUpstreamConnects,
     "headgate_upstream_connects_total",
     kCounter,
     "attempts",
     "Attempts to connect to an upstream, by result: begun (all of them), failed, failed_tls (of "
     "these: the certificate is not trusted, or the TLS handshake failed).",
     {"result"}},
    {Metric::kUpstreamQueue, "headgate_upstream_queue", kGauge, "requests",
     "Requests that wait for a connection to an upstream."},
    {Metric::kUpstreamWaits,
     "headgate_upstream_waits_total",
     kCounter,
     "requests",
     "Requests that had to wait until others ended, by reason: no_place (no connection was free), "
     "client_share (their client had its part of the connections).",
     {"reason"}},
    {Metric::kUpstreamQueueRefusals,
     "headgate_upstream_queue_refusals_total",
     kCounter,
     "requests",
     "Requests refused because too many waited for a connection, by reason: full (all together), "
     "client_share (those of one client).",
     {"reason"}},
    {Metric::kUpstreamOut, "headgate_upstream_out_total", kCounter, "events",
     "How often an address of the upstream got no requests for a time, because it had failed "
     "several times in a row. Each event loop judges by itself."},
    {Metric::kUpstreamChecks,
     "headgate_upstream_checks_total",
     kCounter,
     "checks",
     "Active checks of the addresses of the upstream, by result: passed, failed. Each event loop "
     "checks by itself. Addresses of a name that are set aside are left out.",
     {"result"}},
    {Metric::kUpstreamAddresses, "headgate_upstream_addresses", kGauge, "addresses",
     "Addresses that requests go to: those in --upstream, and those of its names. A name without "
     "an answer so far counts as one."},
    {Metric::kUpstreamLeftOut, "headgate_upstream_addresses_left_out", kGauge, "addresses",
     "Addresses of names that get no requests, because there are more than 256 in all."},
    {Metric::kUpstreamLookups,
     "headgate_upstream_lookups_total",
     kCounter,
     "lookups",
     "Lookups of the names in --upstream, by result: answered, failed (also: without an address). "
     "The addresses stay as they are if one fails.",
     {"result"}},
    {Metric::kUpstreamLookupAge,
     "headgate_upstream_lookup_age_seconds",
     kGauge,
     "seconds",
     "Age of the last answer for a name in --upstream; absent before the first one.",
     {"upstream"}},
    {Metric::kUpstreamAddressRequests,
     "headgate_upstream_address_requests",
     kGauge,
     "requests",
     "Requests in progress at this address of the upstream.",
     {"address"}},
    {Metric::kUpstreamAddressSetAside,
     "headgate_upstream_address_set_aside",
     kGauge,
     "loops",
     "Event loops that have set this address aside, because it failed; 0 if it is well.",
     {"address"}},
    {Metric::kUpstreamInFlight, "headgate_upstream_in_flight", kGauge, "requests",
     "With capacity auto: requests that were sent and have no answer yet."},
    {Metric::kUpstreamInFlightMax, "headgate_upstream_in_flight_max", kGauge, "requests",
     "With capacity auto: the most requests that may be in flight now."},
    {Metric::kUpstreamLongRequests, "headgate_upstream_long_requests", kGauge, "requests",
     "With capacity auto: requests that take much longer than usual, and are not counted as in "
     "flight."},
    {Metric::kUpstreamBaseSeconds, "headgate_upstream_base_seconds", kGauge, "seconds",
     "With capacity auto: the mean time to an answer while requests do not wait for each other."},
    {Metric::kSharePool, "headgate_share_pool_capacity", kGauge, "requests",
     "The capacity that the clients share in this cycle; absent until it is found."},
    {Metric::kShareClients, "headgate_share_clients", kGauge, "clients", "Clients of the pool."},
    {Metric::kShareClientsLeft, "headgate_share_clients_left_total", kCounter, "clients",
     "Clients that left the pool because they made no request for several cycles."},
    {Metric::kShareClientsReplaced, "headgate_share_clients_replaced_total", kCounter, "clients",
     "Clients that made way for a new one, because the pool was full and they had the longest "
     "silence."},
    {Metric::kShareDemand,
     "headgate_share_demand",
     kGauge,
     "requests",
     "Requests that the client made in the last full cycle, let through or not. The 100 clients "
     "with the largest demands have series of their own; the others are summed under an empty "
     "name.",
     {"client"}},
    {Metric::kShareCapacity,
     "headgate_share_capacity",
     kGauge,
     "requests",
     "Requests that the client may make in this cycle; absent, as what it has borrowed and lent, "
     "until a capacity is found.",
     {"client"}},
    {Metric::kShareBorrowed,
     "headgate_share_borrowed",
     kGauge,
     "requests",
     "The part of its capacity that the client has borrowed from others.",
     {"client"}},
    {Metric::kShareLent,
     "headgate_share_lent",
     kGauge,
     "requests",
     "The part of its even share that the client has lent to others.",
     {"client"}},
    {Metric::kShareRequests,
     "headgate_share_requests_total",
     kCounter,
     "requests",
     "Requests of the client, by outcome: allowed, rejected. Those of clients without a series of "
     "their own count under the empty name, and stay there. If a client comes back among the "
     "largest, its series continues from its last value. If it leaves the pool and comes back, its "
     "series begins again at 0, which rate() takes for a restart.",
     {"client", "outcome"}},
    {Metric::kShareCycles,
     "headgate_share_cycles_total",
     kCounter,
     "cycles",
     "Cycles that have ended, by reason: due, new_client, reclaim (a client got its own back "
     "early), capacity (the first capacity was found).",
     {"reason"}},
    {Metric::kShareCycleSeconds, "headgate_share_cycle_seconds", kGauge, "seconds",
     "Length of the last cycle."},
    {Metric::kShareRefusals,
     "headgate_share_refusals_total",
     kCounter,
     "requests",
     "Requests refused by the pool, or that it would have refused with mode passthrough, by "
     "reason: share_used, never_fits, in_flight (capacity auto: the upstream has enough to do), "
     "no_client, too_many_clients.",
     {"reason"}},
    {Metric::kShareCountedOnly, "headgate_share_counted_only_total", kCounter, "requests",
     "Requests that the pool refused and that passed because of mode passthrough."},
    {Metric::kSharePassthrough, "headgate_share_passthrough", kGauge, "pools",
     "Pools whose refusals are only counted: 1 while the mode is passthrough, otherwise 0."},
    {Metric::kFleetRounds,
     "headgate_fleet_pool_rounds_total",
     kCounter,
     "rounds",
     "Rounds of this instance with the pool that a fleet shares, by outcome: written, lost "
     "(another "
     "instance was faster; done again), failed (the store did not answer, or refused).",
     {"outcome"}},
    {Metric::kFleetWaits, "headgate_fleet_pool_waits_total", kCounter, "requests",
     "Requests that waited for a round of the fleet's pool."},
    {Metric::kFleetEarlyDenials, "headgate_fleet_pool_early_denials_total", kCounter, "requests",
     "Requests refused although the fleet's pool might have had room: no round has told in time."},
    {Metric::kFleetPartsExpired, "headgate_fleet_pool_parts_expired_total", kCounter, "requests",
     "Parts of the fleet's pool that this instance took and had not spent when their cycle ended."},
    {Metric::kFleetAlone, "headgate_fleet_pool_alone", kGauge, "pools",
     "1 while this instance divides its part of the capacity without the store, otherwise 0."},
    {Metric::kFleetAloneRequests, "headgate_fleet_pool_alone_requests_total", kCounter, "requests",
     "Requests decided without the store in the place of the fleet's pool."},
    {Metric::kFleetEvents,
     "headgate_fleet_pool_events_total",
     kCounter,
     "events",
     "Events of the fleet's pool: left (this instance continued without the store), "
     "settings_changed "
     "(instances have different settings), replaced_corrupt (a foreign or damaged value), "
     "clock_reset (a value far ahead of the clock).",
     {"event"}},

    // Bytes
    {Metric::kBufferBytes, "headgate_buffer_bytes", kGauge, "bytes",
     "Memory for unfinished requests and TLS handshakes, and for unread answers, of connections "
     "that use more than 16 KiB each. Above max_buffer_bytes the largest and slowest are closed."},
    {Metric::kReceivedBytes, "headgate_received_bytes_total", kCounter, "bytes",
     "Bytes read from clients."},
    {Metric::kSentBytes, "headgate_sent_bytes_total", kCounter, "bytes",
     "Bytes written to clients."},

    // The process
    {Metric::kLogLinesDropped, "headgate_log_lines_dropped_total", kCounter, "lines",
     "Log lines dropped because their event came too often."},
    {Metric::kClockAhead, "headgate_clock_ahead_seconds", kGauge, "seconds",
     "How far the wall clock is ahead of the clock that decisions use; that clock approaches it by "
     "at most 500 ppm."},
    {Metric::kUptime, "headgate_uptime_seconds", kGauge, "seconds",
     "Time since the process started."},
    {Metric::kBuildInfo,
     "headgate_build_info",
     kGauge,
     "builds",
     "Always 1; the label names the version.",
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
