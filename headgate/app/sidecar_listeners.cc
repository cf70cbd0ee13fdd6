#include "headgate/app/sidecar_listeners.h"

#include <fmt/format.h>

#include <utility>

namespace headgate::app {
namespace {

constexpr base::Duration kHandoverTimeout = std::chrono::seconds(5);

}  // namespace

void LogNoState(observe::Log& log, const absl::Status& why) {
  log.Warning(
      "sidecar.state_not_taken",
      {{"reason", std::string(why.message())},
       {"effect", std::string_view("the clients begin with even shares and a whole cycle")}});
}

bool SidecarListeners::FindPredecessor() {
  if (handover_.empty()) return true;
  auto found = Predecessor::Find(handover_, kHandoverTimeout);
  if (found.ok()) {
    predecessor_ = *std::move(found);
    return true;
  }
  console_.Error(fmt::format("--handover: {}", std::string(found.status().message())),
                 "stop the process that has the addresses, and start this one again");
  return false;
}

bool SidecarListeners::AwaitSuccessor(net::EventLoop& loop, std::function<SidecarState()> state,
                                      const std::function<void(const SidecarState&)>& take_over) {
  if (handover_.empty()) return true;
  auto point =
      HandoverPoint::Open(handover_, addresses_, loop,
                          {.state = std::move(state), .leave = [this] { has_successor_ = true; }});
  if (!point.ok()) {
    console_.Error(fmt::format("--handover: {}", std::string(point.status().message())),
                   "name a path in a directory that this user may write");
    return false;
  }
  point_ = *std::move(point);
  if (!predecessor_) return true;
  const absl::StatusOr<SidecarState> taken = predecessor_->SayReady();
  predecessor_.reset();
  log_.Info("sidecar.sockets_taken", {{"addresses", uint64_t{addresses_.size()}}});
  if (taken.ok()) {
    take_over(*taken);
  } else {
    LogNoState(log_, taken.status());
  }
  return true;
}

bool SidecarListeners::Listen(const ListenAddress& address, std::string_view announced,
                              const Sessions& sessions, net::ListenOptions options) {
  options.unix_mode = address.mode;
  options.proxies = address.proxies;
  if (address.tls) options.tls = certificates_.server();
  const std::string name = fmt::format("{} {}", announced, address.endpoint.ToString());
  const auto bound = TakeOrListen(name, address.endpoint, sessions, options);
  if (!bound.ok()) {
    console_.Error(std::string(bound.status().message()), HintOnListening(address.endpoint));
    return false;
  }
  console_.out << announced << (address.tls ? " tls:" : " ") << bound->ToString() << std::endl;
  addresses_.push_back(
      {.name = name, .bound = *bound, .sockets = server_.listening_sockets().back()});
  return true;
}

absl::StatusOr<net::Endpoint> SidecarListeners::TakeOrListen(std::string_view name,
                                                             const net::Endpoint& endpoint,
                                                             const Sessions& sessions,
                                                             const net::ListenOptions& options) {
  auto taken = predecessor_ ? predecessor_->Take(name) : std::nullopt;
  if (!taken) return server_.Listen(endpoint, sessions, options);
  server_.Adopt(endpoint, std::move(taken->sockets), sessions, options);
  return taken->bound;
}

}  // namespace headgate::app
