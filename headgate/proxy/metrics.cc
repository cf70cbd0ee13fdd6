#include "headgate/proxy/metrics.h"

#include <algorithm>
#include <array>
#include <string>

#include "headgate/rule/quote.h"

namespace headgate::proxy {
namespace {

using observe::Metric;

// No client has an empty name.
constexpr std::string_view kOthers = "";

// In the order of algorithm::CycleEnd.
constexpr std::array<std::string_view, algorithm::kCycleEndKinds> kCycleEnds = {
    "due", "new_client", "reclaim", "capacity"};

// Printable, and another one for each client: text that looks like an escape of rule::Printable is
// escaped itself.
std::string LabelOf(std::string_view client) {
  constexpr std::string_view kEscape = "\\x";
  std::string label;
  for (size_t at = client.find(kEscape); at != client.npos; at = client.find(kEscape)) {
    label.append(rule::Printable(client.substr(0, at))).append("\\x5cx");
    client.remove_prefix(at + kEscape.size());
  }
  return label.append(rule::Printable(client));
}

// Before a capacity is found, there are no shares.
void CollectClient(std::string_view name, const algorithm::ClientFigures& figures,
                   bool has_capacity, observe::Sink& sink) {
  sink.Set(Metric::kShareDemand, {name}, figures.demand);
  if (has_capacity) {
    sink.Set(Metric::kShareCapacity, {name}, figures.capacity);
    sink.Set(Metric::kShareBorrowed, {name}, figures.borrowed);
    sink.Set(Metric::kShareLent, {name}, figures.lent);
  }
}

void CollectRequests(std::string_view name, const algorithm::FairShareCounts& counts,
                     observe::Sink& sink) {
  sink.Set(Metric::kShareRequests, {name, "allowed"}, counts.allowed);
  sink.Set(Metric::kShareRequests, {name, "rejected"}, counts.rejected);
}

}  // namespace

void CollectProxy(std::span<const ProxyCounters* const> loops, observe::Sink& sink) {
  std::array<uint64_t, proxy::kRelayOutcomeCount> outcomes{};
  uint64_t refused = 0;
  uint64_t looping = 0;
  uint64_t not_forwarded = 0;
  uint64_t preflights = 0;
  uint64_t preflights_over = 0;
  uint64_t begun = 0;
  uint64_t retries = 0;
  uint64_t tunnels = 0;
  base::Histogram<proxy::kAnswerBounds> answers;
  uint64_t connections = 0;
  uint64_t connects = 0;
  uint64_t connect_failures = 0;
  uint64_t tls_failures = 0;
  uint64_t queued = 0;
  uint64_t waits_for_place = 0;
  uint64_t waits_for_client = 0;
  uint64_t refusals_full = 0;
  uint64_t refusals_client = 0;
  uint64_t out = 0;
  uint64_t checks_passed = 0;
  uint64_t checks_failed = 0;
  for (const ProxyCounters* loop : loops) {
    const ProxyCounters& counters = *loop;
    for (size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += counters.relays.outcomes[i].value();
    refused += counters.application.refused.value();
    looping += counters.application.loops.value();
    not_forwarded += counters.application.not_forwarded.value();
    preflights += counters.application.preflights.value();
    preflights_over += counters.application.preflights_over.value();
    begun += counters.relays.begun.value();
    retries += counters.relays.retries.value();
    tunnels += counters.relays.tunnels.value();
    answers += counters.relays.head_seconds.Read();
    connections += counters.upstreams.connections.value();
    connects += counters.upstreams.connects.value();
    connect_failures += counters.upstreams.connect_failures.value();
    tls_failures += counters.upstreams.tls_failures.value();
    queued += counters.upstreams.queued.value();
    waits_for_place += counters.upstreams.waits_for_place.value();
    waits_for_client += counters.upstreams.waits_for_client.value();
    refusals_full += counters.upstreams.refusals_full.value();
    refusals_client += counters.upstreams.refusals_client.value();
    out += counters.upstreams.out.value();
    checks_passed += counters.upstreams.checks_passed.value();
    checks_failed += counters.upstreams.checks_failed.value();
  }
  uint64_t ended = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    ended += outcomes[i];
    sink.Set(Metric::kProxyRequests, {Name(static_cast<RelayOutcome>(i))}, outcomes[i]);
  }
  sink.Set(Metric::kProxyRequests, {"refused"}, refused);
  sink.Set(Metric::kProxyRequests, {"looping"}, looping);
  sink.Set(Metric::kProxyRequests, {"not_forwarded"}, not_forwarded);
  // The counters are read one after the other, while they change.
  sink.Set(Metric::kProxyInFlight, {}, begun - std::min(begun, ended));
  sink.Set(Metric::kProxyPreflights, {"passed"}, preflights);
  sink.Set(Metric::kProxyPreflights, {"counted"}, preflights_over);
  sink.Set(Metric::kProxyRetries, {}, retries);
  sink.Set(Metric::kProxyTunnels, {}, tunnels);
  sink.Set(Metric::kUpstreamSeconds, {},
           observe::HistogramValue{
               .bounds = proxy::kAnswerBounds, .counts = answers.counts, .sum = answers.sum});
  sink.Set(Metric::kUpstreamConnections, {}, connections);
  sink.Set(Metric::kUpstreamConnects, {"failed_tls"}, tls_failures);
  sink.Set(Metric::kUpstreamConnects, {"failed"}, connect_failures);
  sink.Set(Metric::kUpstreamConnects, {"begun"}, connects);
  sink.Set(Metric::kUpstreamQueue, {}, queued);
  sink.Set(Metric::kUpstreamWaits, {"no_place"}, waits_for_place);
  sink.Set(Metric::kUpstreamWaits, {"client_share"}, waits_for_client);
  sink.Set(Metric::kUpstreamQueueRefusals, {"full"}, refusals_full);
  sink.Set(Metric::kUpstreamQueueRefusals, {"client_share"}, refusals_client);
  sink.Set(Metric::kUpstreamOut, {}, out);
  sink.Set(Metric::kUpstreamChecks, {"passed"}, checks_passed);
  sink.Set(Metric::kUpstreamChecks, {"failed"}, checks_failed);
}

void CollectShare(share::PoolSnapshot& snapshot, share::ClientSeries& series, observe::Sink& sink) {
  const size_t clients = snapshot.clients.size();
  const bool has_capacity = snapshot.capacity.has_value();
  series.Follow(snapshot);
  for (const share::ClientSnapshot& client : snapshot.clients) {
    const std::string label = LabelOf(client.name);
    CollectClient(label, client.figures, has_capacity, sink);
    CollectRequests(label, client.figures.counts, sink);
  }
  const algorithm::FairShareCounts& others = snapshot.others.counts;
  if (snapshot.others_count > 0) CollectClient(kOthers, snapshot.others, has_capacity, sink);
  if (snapshot.others_count > 0 || others.allowed > 0 || others.rejected > 0)
    CollectRequests(kOthers, others, sink);
  sink.Set(Metric::kShareClients, {}, clients);
  sink.Set(Metric::kShareClientsLeft, {}, snapshot.clients_left);
  sink.Set(Metric::kShareClientsReplaced, {}, snapshot.clients_replaced);
  if (snapshot.capacity) sink.Set(Metric::kSharePool, {}, *snapshot.capacity);
  for (size_t i = 0; i < kCycleEnds.size(); ++i)
    sink.Set(Metric::kShareCycles, {kCycleEnds[i]}, snapshot.cycle.ends[i]);
  sink.Set(Metric::kShareCycleSeconds, {}, snapshot.cycle.last_length);
  const share::Refusals& refusals = snapshot.refusals;
  sink.Set(Metric::kShareRefusals, {"share_used"}, refusals.share_used);
  sink.Set(Metric::kShareRefusals, {"never_fits"}, refusals.never_fits);
  sink.Set(Metric::kShareRefusals, {"in_flight"}, refusals.in_flight);
  sink.Set(Metric::kShareRefusals, {"no_client"}, refusals.no_client);
  sink.Set(Metric::kShareRefusals, {"too_many_clients"}, refusals.too_many_clients);
  sink.Set(Metric::kShareCountedOnly, {}, snapshot.counted_only);
  sink.Set(Metric::kSharePassthrough, {}, uint64_t{snapshot.mode == share::Mode::kPassthrough});
  if (!snapshot.upstream) return;
  sink.Set(Metric::kUpstreamInFlight, {}, uint64_t{snapshot.upstream->in_flight});
  sink.Set(Metric::kUpstreamLongRequests, {}, snapshot.upstream->long_requests);
  sink.Set(Metric::kUpstreamInFlightMax, {}, uint64_t{snapshot.upstream->limit});
  if (snapshot.upstream->latency_base)
    sink.Set(Metric::kUpstreamBaseSeconds, {}, *snapshot.upstream->latency_base);
}

}  // namespace headgate::proxy
