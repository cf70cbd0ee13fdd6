#include "headgate/proxy/upstream/health.h"

#include <algorithm>

namespace headgate::proxy::upstream {
namespace {

std::string_view Explain(AsideBecause why) {
  switch (why) {
    case AsideBecause::kNot:
      break;
    case AsideBecause::kNoConnection:
      return "no connection could be made several times in a row";
    case AsideBecause::kBroken:
      return "it ended connections before the answer, or violated the protocol, several times in a "
             "row";
    case AsideBecause::kTooSlow:
      return "it did not answer in time several times in a row";
    case AsideBecause::kChecksFailed:
      return "it failed active checks";
    case AsideBecause::kNeverAccepted:
      return "it has never accepted a connection, and other addresses of its name have";
  }
  return "";
}

}  // namespace

void Health::Report(size_t loop, std::span<const ProxyLoop::DescribedAddress> addresses,
                    base::Instant now) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string>& names = names_[loop];
  std::vector<std::string> before;
  before.swap(names);
  for (const auto& [target, state] : addresses) {
    const std::string& name = names.emplace_back(target.ToString());
    Known& known = known_[name];
    AddressState& last = known.by_loop[loop];
    const bool is_new = last.aside != state.aside;
    last = state;
    if (is_new) Judge(name, known, now);
  }
  for (const std::string& name : before) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto known = known_.find(name);
    known->second.by_loop.erase(loop);
    if (known->second.by_loop.empty()) known_.erase(known);
  }
}

void Health::Judge(const std::string& name, Known& known, base::Instant now) {
  AsideBecause aside = AsideBecause::kNot;
  for (const auto& [loop, state] : known.by_loop) aside = std::max(aside, state.aside);
  const AsideBecause before = std::exchange(known.aside, aside);
  if ((before == AsideBecause::kNot) == (aside == AsideBecause::kNot)) return;
  if (aside == AsideBecause::kNot) {
    // Addresses that never accepted a connection are not logged when they are set aside.
    if (before == AsideBecause::kNeverAccepted) return;
    log_.Info("upstream.returned", {{"address", name},
                                    {"reason", before == AsideBecause::kChecksFailed
                                                   ? std::string_view("it passed an active check")
                                                   : std::string_view("it has answered a request")},
                                    {"for", now - known.aside_since}});
    return;
  }
  known.aside_since = now;
  if (aside == AsideBecause::kNeverAccepted) return;
  log_.Warning(
      "upstream.set_aside",
      {{"address", name},
       {"reason", Explain(aside)},
       {"effect", std::string_view("it gets no requests but trials, unless all addresses fail")},
       {"hint", std::string_view("check the service at this address; GET /v1/sidecar shows all")}});
}

std::vector<Health::Address> Health::addresses() const {
  const std::lock_guard lock(mutex_);
  std::vector<Address> all;
  for (const auto& [name, known] : known_) {
    Address& address = all.emplace_back(Address{.name = name, .reason = Explain(known.aside)});
    for (const auto& [loop, state] : known.by_loop) {
      address.in_progress += state.in_progress;
      address.loops_aside += state.aside != AsideBecause::kNot;
    }
  }
  return all;
}

void Health::Collect(observe::Sink& sink) const {
  for (const Address& address : addresses()) {
    sink.Set(observe::Metric::kUpstreamAddressRequests, {address.name}, address.in_progress);
    sink.Set(observe::Metric::kUpstreamAddressSetAside, {address.name},
             uint64_t{address.loops_aside});
  }
}

}  // namespace headgate::proxy::upstream
