#include "headgate/app/runtime/listeners.h"

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

bool Listeners::FindPredecessor() {
  if (handover_.empty()) return true;
  auto found = handover::Predecessor::Find(handover_, kHandoverTimeout);
  if (found.ok()) {
    predecessor_ = *std::move(found);
    return true;
  }
  return Refuse(found.status());
}

bool Listeners::Refuse(const absl::Status& problem) const {
  console_.Error(fmt::format("--handover: {}", std::string(problem.message())),
                 HintOnHandover(problem));
  return false;
}

bool Listeners::AwaitSuccessor(
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

bool Listeners::Listen(const ListenAddress& address, Reveals reveals, const Sessions& sessions) {
  const absl::Status status = Open(address, "listening on", reveals, sessions, {});
  if (status.ok()) return true;
  console_.Error(std::string(status.message()), HintOnListening(address.endpoint));
  return false;
}

bool Listeners::ListenForAdmin(const Admin& admin, const Sessions& sessions) {
  const absl::Status status = Open(admin.address, "admin on", Reveals::kState, sessions,
                                   {.reserved_connections_max = admin.connections_max});
  if (status.ok()) return true;
  const std::string reason(status.message());
  if (!admin.is_default) {
    console_.Error(reason, "--admin-listen 127.0.0.1:0 takes a free port, none turns it off");
    return false;
  }
  // A second server on the same machine starts without one.
  log_.Warning("admin.listen_failed",
               {{"reason", reason},
                {"effect", std::string_view("the server runs without an admin address")},
                {"hint", std::string_view("--admin-listen 127.0.0.1:0 takes a free port")}});
  return true;
}

void Listeners::Announce() { console_.out << std::exchange(announced_, {}) << std::flush; }

absl::Status Listeners::Open(const ListenAddress& address, std::string_view announced,
                             Reveals reveals, const Sessions& sessions,
                             net::ListenOptions options) {
  options.unix_mode = address.mode;
  options.proxies = address.proxies;
  if (address.tls) options.tls = certificates_.server();
  const std::string name = fmt::format("{} {}", announced, address.endpoint.ToString());
  HEADGATE_ASSIGN_OR_RETURN(const net::Endpoint bound,
                            TakeOrListen(name, address.endpoint, sessions, options));
  announced_ += fmt::format("{}{}{}\n", announced, address.tls ? " tls:" : " ", bound.ToString());
  addresses_.push_back(
      {.name = name, .bound = bound, .sockets = server_.listening_sockets().back()});
  if (reveals == Reveals::kState && !address.endpoint.loopback() && !access_.has_logins()) {
    log_.Warning(
        "credential.not_set",
        {{"address", bound.ToString()},
         {"effect",
          std::string_view("refund, reset, rules and metrics are refused from other machines")},
         {"hint", std::string_view("set credential_file")}});
  }
  return absl::OkStatus();
}

absl::StatusOr<net::Endpoint> Listeners::TakeOrListen(std::string_view name,
                                                      const net::Endpoint& endpoint,
                                                      const Sessions& sessions,
                                                      const net::ListenOptions& options) {
  auto taken = predecessor_ ? predecessor_->Take(name) : std::nullopt;
  if (!taken) return server_.Listen(endpoint, sessions, options);
  server_.Adopt(endpoint, std::move(taken->sockets), sessions, options);
  return taken->bound;
}

}  // namespace headgate::app
