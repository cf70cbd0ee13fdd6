#include "headgate/app/sidecar/listeners.h"

#include <fmt/format.h>

#include <utility>

namespace headgate::app {
namespace {

constexpr base::Duration kHandoverTimeout = std::chrono::seconds(5);

// None of these failures stops the process that runs, and the hints do not ask to stop it.
std::string_view HintOnHandover(const absl::Status& problem) {
  switch (problem.code()) {
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnavailable:
      return "choose a path at which there is nothing, in a directory that this user may write";
    case absl::StatusCode::kPermissionDenied:
      return "choose a path in a directory of this user; both processes must run as the same user";
    case absl::StatusCode::kNotFound:
      return "make the directory, so that only this user may write in it";
    case absl::StatusCode::kAborted:
      return "wait until that process serves, or end it if it hangs: the old one continues to "
             "serve";
    default:
      return "the old process continues to serve: see its log, then start this one again";
  }
}

}  // namespace

void LogNoState(observe::Log& log, const absl::Status& why) {
  log.Warning(
      "sidecar.state_not_taken",
      {{"reason", std::string(why.message())},
       {"effect", std::string_view("the clients begin with even shares and a whole cycle")}});
}

bool SidecarListeners::FindPredecessor() {
  if (handover_.empty()) return true;
  auto found = handover::Predecessor::Find(handover_, kHandoverTimeout);
  if (found.ok()) {
    predecessor_ = *std::move(found);
    return true;
  }
  return Refuse(found.status());
}

bool SidecarListeners::Refuse(const absl::Status& problem) const {
  console_.Error(fmt::format("--handover: {}", std::string(problem.message())),
                 HintOnHandover(problem));
  return false;
}

bool SidecarListeners::AwaitSuccessor(
    net::EventLoop& loop, std::function<handover::SidecarState()> state,
    const std::function<void(const handover::SidecarState&)>& take_over) {
  if (handover_.empty()) return true;
  if (predecessor_) {
    if (const absl::Status waits = predecessor_->StillWaits(); !waits.ok()) return Refuse(waits);
  }
  const auto before = predecessor_ ? std::optional(predecessor_->file()) : std::nullopt;
  auto point = handover::HandoverPoint::Open(
      {.path = handover_, .before = before}, addresses_, loop, log_,
      {.state = std::move(state), .leave = [this] { has_successor_ = true; }});
  if (!point.ok()) return Refuse(point.status());
  point_ = *std::move(point);
  if (!predecessor_) return true;
  const absl::StatusOr<handover::SidecarState> taken = predecessor_->SayReady();
  predecessor_.reset();
  if (absl::IsDeadlineExceeded(taken.status())) return Refuse(taken.status());
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
