#include "headgate/proxy/upstream/live.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/net/connector.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/kept_answers.h"

namespace headgate::proxy::upstream {

Live::LookUp Live::SystemsLookUp(net::EventLoop& loop) {
  return [&loop](const net::StreamTarget& name, net::NameLookup::Done done) {
    net::ForgetKeptAnswer(name.host, name.port);
    return std::make_shared<net::NameLookup>(loop, name.host, name.port, std::move(done));
  };
}

Live::Live(const LiveOptions& options, LookUp look_up, net::EventLoop& loop,
           const base::DisciplinedClock& clock, observe::Log& log, Publish publish)
    : options_(options),
      look_up_(std::move(look_up)),
      loop_(loop),
      clock_(clock),
      log_(log),
      publish_(std::move(publish)),
      names_(options.resolve, options.tls_name),
      tls_(options.tls),
      files_(
          "the upstream", [this] { return ReloadTls(); }, loop, log),
      timer_(loop, [this] { LookUpDue(); }) {
  names_.Follow(options.list, clock.Now());
}

void Live::Begin() {
  const net::TlsOptions& tls = options_.tls_files;
  files_.Follow({tls.ca_file, tls.certificate_file, tls.key_file});
  LookUpDue();
}

List Live::list() const {
  const std::lock_guard lock(mutex_);
  return names_.list();
}

std::vector<Address> Live::addresses() const {
  const std::lock_guard lock(mutex_);
  return names_.Expand().all;
}

std::vector<Names::State> Live::names() const {
  const std::lock_guard lock(mutex_);
  return names_.states();
}

void Live::Set(List to) {
  const std::lock_guard lock(mutex_);
  log_.Info("sidecar.upstream_changed", {{"upstream", std::string_view(ToString(to))}});
  names_.Follow(std::move(to), clock_.Now());
  PublishNow();
  loop_.Post([this] { LookUpDue(); });
}

std::vector<handover::NamedAddress> Live::HandOver() const {
  std::vector<handover::NamedAddress> known;
  for (const Names::State& name : names()) {
    for (const net::StreamTarget& address : name.addresses) {
      if (known.size() == handover::kNamedAddressesMax) return known;
      known.push_back({.name = name.name.ToString(), .address = address.ToString()});
    }
  }
  return known;
}

void Live::TakeOver(const std::vector<handover::NamedAddress>& known) {
  const std::lock_guard lock(mutex_);
  for (const Names::State& name : names_.states()) {
    std::vector<net::StreamTarget> addresses;
    for (const handover::NamedAddress& one : known) {
      const auto endpoint = net::ParseEndpoint(one.address);
      const bool is_of_name = one.name == name.name.ToString() && endpoint.ok() &&
                              (endpoint->kind == net::Endpoint::Kind::kIpv4 ||
                               endpoint->kind == net::Endpoint::Kind::kIpv6) &&
                              endpoint->port == name.name.port;
      if (is_of_name) addresses.push_back(net::TargetOf(*endpoint));
    }
    names_.TakeOver(name.name, std::move(addresses));
  }
  PublishNow();
}

absl::Status Live::ReloadTls() {
  HEADGATE_ASSIGN_OR_RETURN(auto loaded, net::TlsContext::Load(options_.tls_files));
  const std::lock_guard lock(mutex_);
  tls_ = std::move(loaded);
  PublishNow();
  return absl::OkStatus();
}

void Live::PublishNow() {
  const Names::Addresses addresses = names_.Expand();
  const bool too_many = addresses.left_out > 0;
  if (too_many && !leaves_out_) {
    log_.Warning("upstream.addresses_left_out",
                 {{"used", uint64_t{addresses.all.size()}},
                  {"left_out", addresses.left_out},
                  {"effect", std::string_view("those beyond the bound get no requests")},
                  {"hint", std::string_view("let several sidecars have a part of them each")}});
  }
  leaves_out_ = too_many;
  publish_(addresses.all, tls_);
}

void Live::LookUpDue() {
  std::vector<net::StreamTarget> due;
  std::optional<base::Instant> next;
  {
    const std::lock_guard lock(mutex_);
    due = names_.TakeDue(clock_.Now());
    next = names_.next_due();
    // If a name is due again although its lookup is in progress, it was removed from the list and
    // added again meanwhile. Its old lookup is given up.
    std::erase_if(lookups_, [&](const auto& lookup) {
      return !names_.Follows(lookup.first) ||
             std::find(due.begin(), due.end(), lookup.first) != due.end();
    });
  }
  for (const net::StreamTarget& name : due) {
    lookups_.emplace_back(
        name, look_up_(name, [this, name](const absl::StatusOr<net::SocketAddresses>& answer) {
          OnAnswer(name, answer);
        }));
  }
  if (next) timer_.SetAfter(std::max(base::Duration(0), *next - clock_.Now()));
}

// Runs within the lookup's callback, so nothing of the lookup may be used after it is removed from
// lookups_.
void Live::OnAnswer(net::StreamTarget name, absl::StatusOr<net::SocketAddresses> answer) {
  std::erase_if(lookups_, [&](const auto& lookup) { return lookup.first == name; });
  (answer.ok() && !answer->empty() ? answered_ : failed_).Add();
  Names::Heard heard;
  {
    const std::lock_guard lock(mutex_);
    heard = names_.OnAnswer(name, answer, clock_.Now());
    if (heard.changed()) PublishNow();
  }
  LogAnswer(name, heard, answer);
  LookUpDue();
}

void Live::LogAnswer(const net::StreamTarget& name, const Names::Heard& heard,
                     const absl::StatusOr<net::SocketAddresses>& answer) {
  const std::string text = name.ToString();
  if (heard.failures == 1) {
    const std::string reason =
        answer.ok() ? "it has no address" : std::string(answer.status().message());
    const std::string_view effect = heard.count > 0
                                        ? "requests go to the addresses of the last answer"
                                        : "each connection looks it up; 502 if that fails";
    log_.Warning("upstream.lookup_failed",
                 {{"upstream", std::string_view(text)},
                  {"reason", std::string_view(reason)},
                  {"effect", effect},
                  {"hint", std::string_view("`getent ahosts NAME` asks the same servers")}});
  }
  if (heard.recovered)
    log_.Info("upstream.lookup_recovered", {{"upstream", std::string_view(text)}});
  if (heard.changed()) {
    log_.Info("upstream.addresses_changed", {{"upstream", std::string_view(text)},
                                             {"added", heard.added},
                                             {"removed", heard.removed},
                                             {"addresses", heard.count}});
  }
}

void Live::Collect(observe::Sink& sink) const {
  Names::Addresses addresses;
  std::vector<Names::State> names;
  {
    const std::lock_guard lock(mutex_);
    addresses = names_.Expand();
    names = names_.states();
  }
  sink.Set(observe::Metric::kUpstreamAddresses, {}, uint64_t{addresses.all.size()});
  sink.Set(observe::Metric::kUpstreamLeftOut, {}, addresses.left_out);
  sink.Set(observe::Metric::kUpstreamLookups, {"answered"}, answered_.value());
  sink.Set(observe::Metric::kUpstreamLookups, {"failed"}, failed_.value());
  const base::Instant now = clock_.Now();
  for (const Names::State& name : names) {
    if (!name.answered) continue;
    const base::Duration age = std::max(base::Duration(0), now - *name.answered);
    sink.Set(observe::Metric::kUpstreamLookupAge, {name.name.ToString()}, age);
  }
}

}  // namespace headgate::proxy::upstream
