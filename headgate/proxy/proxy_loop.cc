#include "headgate/proxy/proxy_loop.h"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::proxy {

ProxyLoop::ProxyLoop(const ProxyOptions& options, Admission& admission, net::EventLoop& loop,
                     const base::DisciplinedClock& clock)
    : options_(options),
      loop_(loop),
      clock_(clock),
      connect_([this](size_t address, UpstreamConnection::Owner& owner) {
        return Connect(address, owner);
      }),
      wheel_(clock.Now()),
      held_(options.upstreams.queue_max,
            [this](base::Instant due) {
              if (on_loop_)
                on_loop_->turn.SetAfter(std::max(base::Duration(0), due - clock_.Now()));
            }),
      deferred_(std::numeric_limits<size_t>::max(),
                [this](base::Instant due) {
                  if (on_loop_)
                    on_loop_->work.SetAfter(std::max(base::Duration(0), due - clock_.Now()));
                }),
      random_(static_cast<uint64_t>(clock.Now().ns)),
      upstreams_(options.upstreams, connect_, counters_.upstreams,
                 [this] {
                   if (on_loop_) loop_.AtEndOfTurn(on_loop_->woken);
                 }),
      relays_{.options = options.relay,
              .admission = admission,
              .places = upstreams_,
              .wheel = wheel_,
              .counters = counters_.relays,
              .random = random_},
      application_(options.application, relays_, counters_.application) {
  application_.SetHeld(held_);
  SetAddresses(options.addresses);
  on_loop_.emplace(*this);
  on_loop_->tick.SetAfter(TickWheel::kTick);
}

ProxyLoop::~ProxyLoop() { HEADGATE_CHECK(!on_loop_); }

std::unique_ptr<UpstreamConnection> ProxyLoop::Connect(size_t address,
                                                       UpstreamConnection::Owner& owner) {
  return std::make_unique<StreamConnection>(addresses_.at(address), loop_, clock_, owner);
}

void ProxyLoop::SetAddresses(std::span<const StreamConnectionOptions> addresses) {
  Addresses old = std::exchange(addresses_, {});
  old.merge(gone_);
  std::vector<ServiceAddress> ids;
  for (const StreamConnectionOptions& address : addresses) {
    const auto known = std::find_if(old.begin(), old.end(), [&](const auto& entry) {
      return entry.second->target == address.target &&
             entry.second->stream.server_name == address.stream.server_name;
    });
    const size_t id = known != old.end() ? known->first : next_address_++;
    addresses_.emplace(id, std::make_shared<const StreamConnectionOptions>(address));
    ids.push_back({.id = id, .name = address.name});
  }
  const base::Instant now = clock_.Now();
  upstreams_.SetAddresses(ids, now);
  gone_ = std::move(old);
  std::erase_if(gone_, [&](const auto& entry) { return !upstreams_.HasRetired(entry.first); });
  if (on_addresses_) DescribeAddresses(now);
  if (options_.checks.path.empty()) return;
  std::erase_if(checks_, [&](const auto& check) { return !addresses_.contains(check.first); });
  for (const size_t id : std::views::keys(addresses_)) {
    checks_.try_emplace(
        id, options_.checks, id, connect_, wheel_,
        [this, id](bool passed) { upstreams_.OnChecked(id, passed); }, now);
  }
}

void ProxyLoop::SetHolds(bool holds) {
  upstreams_.SetDivides(holds);
  if (!holds) held_.LetGo();
}

void ProxyLoop::EndWaiting(base::Instant end) {
  waiting_ends_ = end;
  held_.EndAt(end);
}

void ProxyLoop::Tick() {
  const base::Instant now = clock_.Now();
  wheel_.Advance(now);
  if (now >= waiting_ends_) upstreams_.EndQueue(now);
  upstreams_.OnTick(now);
  if (on_addresses_) DescribeAddresses(now);
  on_loop_->tick.SetAfter(TickWheel::kTick);
}

void ProxyLoop::SetOnAddresses(OnAddresses call) {
  on_addresses_ = std::move(call);
  DescribeAddresses(clock_.Now());
}

void ProxyLoop::DescribeAddresses(base::Instant now) {
  upstreams_.DescribeAddresses(states_);
  if (states_ == states_told_) return;
  states_told_ = states_;
  described_.clear();
  for (const AddressState& state : states_)
    described_.push_back({.target = addresses_.at(state.id)->target, .state = state});
  on_addresses_(described_, now);
}

void ProxyLoop::LeaveLoop() {
  checks_.clear();
  upstreams_.Close(clock_.Now());
  if (rules_ != nullptr) rules_->LeaveLoop();
  on_loop_.reset();
}

}  // namespace headgate::proxy
