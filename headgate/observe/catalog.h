// All metrics, each declared once: name, type, unit, help, labels. Rendering,
// docs/reference/metrics.md and the dashboard read this table; nothing else can be exported.
//
// Labels are bounded sets (a rule's name, an outcome, a front), never keys of clients.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace headgate::observe {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };
std::string_view Name(MetricType type);

// In the order of the catalog.
enum class Metric : uint8_t {
  kDecisions,
  kPassthrough,
  kRolloutDecisions,
  kGivenLimits,
  kPermits,
  kPermitsHeld,
  kPermitsHere,
  kPermitsNoRoom,
  kSeries,
  kSeriesDropped,
  kRequests,
  kProtocolErrors,
  kBatchSeconds,
  kWaitSeconds,
  kBuckets,
  kBucketsMax,
  kEvictions,
  kEvictedRequests,
  kHitBlocks,
  kHitBlocksMax,
  kHitsRefused,
  kLimits,
  kClientLimits,
  kClientLimitsForgotten,
  kSnapshotWrites,
  kSnapshotAge,
  kSnapshotRestores,
  kBucketsRebased,
  kSnapshotBucketsLeftOut,
  kRules,
  kRuleReloads,
  kRuleProblems,
  kRulesAge,
  kWatchPolling,
  kWatchFailures,
  kConfigAge,
  kWatchKept,
  kWatchReads,
  kWatchMissed,
  kRuleEdits,
  kWatchInstances,
  kSharedDecisions,
  kInstances,
  kStoreClockOffset,
  kLeaseAsks,
  kLeasedRequests,
  kLeaseRequestsHeld,
  kLeaseLateGrants,
  kLeaseKeysEvicted,
  kLeaseKeysNotFollowed,
  kOutageDebts,
  kOutageRequests,
  kStoreCalls,
  kStoreCallSeconds,
  kStoreRetries,
  kStoreLocks,
  kStoreRedirects,
  kStoreBatchCalls,
  kStoreBreakersOpen,
  kStoreBreakerOpened,
  kStoreDisconnects,
  kStoreShardsLearning,
  kStoreHistoryChanges,
  kStorePausesMissed,
  kStoreAlarms,
  kStoreBucketEvents,
  kConnections,
  kConnectionsAccepted,
  kConnectionsRefused,
  kAcceptErrors,
  kConnectionsClosed,
  kSessions,
  kAuthRequests,
  kTokensRefused,
  kAuthRepeated,
  kAuthForgotten,
  kAuthHeld,
  kMappingReloads,
  kCertificateReloads,
  kUserReloads,
  kLogins,
  kProxyRequests,
  kProxyInFlight,
  kProxyPreflights,
  kProxyRetries,
  kProxyTunnels,
  kHeldRefused,
  kHeldLeft,
  kLetThrough,
  kSizeUnits,
  kHttp2Floods,
  kHttp2Refusals,
  kUpstreamSeconds,
  kUpstreamConnections,
  kUpstreamConnects,
  kUpstreamQueue,
  kUpstreamWaits,
  kUpstreamQueueRefusals,
  kUpstreamOut,
  kUpstreamChecks,
  kUpstreamAddresses,
  kUpstreamLeftOut,
  kUpstreamLookups,
  kUpstreamLookupAge,
  kUpstreamAddressRequests,
  kUpstreamAddressSetAside,
  kUpstreamInFlight,
  kUpstreamInFlightMax,
  kUpstreamLongRequests,
  kUpstreamBaseSeconds,
  kSharePool,
  kShareClients,
  kShareClientsLeft,
  kShareClientsReplaced,
  kShareDemand,
  kShareCapacity,
  kShareBorrowed,
  kShareLent,
  kShareRequests,
  kShareCycles,
  kShareCycleSeconds,
  kShareRefusals,
  kShareCountedOnly,
  kSharePassthrough,
  kFleetRounds,
  kFleetWaits,
  kFleetEarlyDenials,
  kFleetPartsExpired,
  kFleetAlone,
  kFleetAloneRequests,
  kFleetEvents,
  kBufferBytes,
  kReceivedBytes,
  kSentBytes,
  kLogLinesDropped,
  kClockAhead,
  kUptime,
  kBuildInfo,
};
inline constexpr size_t kMetricCount = static_cast<size_t>(Metric::kBuildInfo) + 1;

struct MetricSpec {
  static constexpr size_t kLabelsMax = 4;

  Metric metric;
  std::string_view name;
  MetricType type;
  std::string_view unit;  // the unit of the value
  std::string_view help;
  std::array<std::string_view, kLabelsMax> label_names{};  // unused names are empty

  constexpr size_t label_count() const {
    size_t count = 0;
    while (count < kLabelsMax && !label_names[count].empty()) ++count;
    return count;
  }
  constexpr std::span<const std::string_view> labels() const {
    return {label_names.data(), label_count()};
  }
};

std::span<const MetricSpec, kMetricCount> Catalog();
const MetricSpec& SpecOf(Metric metric);

// The upper bounds of kBatchSeconds' buckets, in nanoseconds: 100 ns to 100 ms, three per decade.
inline constexpr std::array<uint64_t, 19> kLatencyBounds = {
    100,       200,        500,        1'000,      2'000,      5'000,     10'000,
    20'000,    50'000,     100'000,    200'000,    500'000,    1'000'000, 2'000'000,
    5'000'000, 10'000'000, 20'000'000, 50'000'000, 100'000'000};

// The upper bounds of kWaitSeconds' buckets, three per decade: from 50 µs, a store on the same
// machine, to 1 s.
inline constexpr std::array<uint64_t, 14> kWaitBounds = {
    50'000,     100'000,    200'000,    500'000,     1'000'000,   2'000'000,   5'000'000,
    10'000'000, 20'000'000, 50'000'000, 100'000'000, 200'000'000, 500'000'000, 1'000'000'000};

}  // namespace headgate::observe
