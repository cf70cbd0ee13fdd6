#include "headgate/proxy/proxy_loop.h"

#include "headgate/base/check.h"

namespace headgate::proxy {

ProxyLoop::ProxyLoop(const ProxyOptions& options, Admission& admission, net::EventLoop& loop,
                     const base::DisciplinedClock& clock)
    : options_(options),
      loop_(loop),
      clock_(clock),
      wheel_(clock.Now()),
      random_(static_cast<uint64_t>(clock.Now().ns)),
      upstreams_(
          options.upstreams, options.addresses.size(),
          [this](size_t address, UpstreamConnection::Owner& owner) {
            return Connect(address, owner);
          },
          counters_.upstreams,
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
  on_loop_.emplace(*this);
  on_loop_->tick.SetAfter(TickWheel::kTick);
}

ProxyLoop::~ProxyLoop() { HEADGATE_CHECK(!on_loop_); }

std::unique_ptr<UpstreamConnection> ProxyLoop::Connect(size_t address,
                                                       UpstreamConnection::Owner& owner) {
  return std::make_unique<StreamConnection>(options_.addresses[address], loop_, clock_, owner);
}

void ProxyLoop::Tick() {
  const base::Instant now = clock_.Now();
  wheel_.Advance(now);
  upstreams_.OnTick(now);
  on_loop_->tick.SetAfter(TickWheel::kTick);
}

void ProxyLoop::LeaveLoop() {
  upstreams_.Close(clock_.Now());
  on_loop_.reset();
}

}  // namespace headgate::proxy
