#include "headgate/app/runtime/server_process.h"

#include <fmt/format.h>

#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/tls_settings.h"

namespace headgate::app {
namespace {

net::ServerOptions ServerOptionsOf(const Settings& settings, const FilePlan& files) {
  return {
      .threads = ThreadsOf(settings),
      .connections_max = static_cast<uint32_t>(files.connections_max),
      .connections_per_address_max = static_cast<uint32_t>(settings.max_connections_per_address),
      .refusals_max = static_cast<uint32_t>(files.refusals_max),
      .request_timeout = settings.request_timeout,
      .idle_timeout = settings.idle_timeout,
      .write_timeout = settings.write_timeout,
      .buffer_bytes_max = settings.max_buffer_bytes};
}

}  // namespace

ServerProcess::ServerProcess(const Settings& settings, const FilePlan& files,
                             const Console& console, const Signals& signals)
    : files_(files),
      console_(console),
      signals_(signals),
      threads_(ThreadsOf(settings)),
      log_(LogOptionsOf(settings), system_clock_),
      engine_(settings, threads_, system_clock_, log_, spare_files_),
      certificates_(TlsServerOptionsOf(settings), control_, log_),
      access_(
          {.credential = settings.credential,
           .users = settings.users_file.empty() ? nullptr : std::make_shared<access::UserTable>()}),
      server_(std::in_place, ServerOptionsOf(settings, files), engine_.clock(), spare_files_),
      listeners_(settings.handover, *server_, certificates_, access_, console, log_),
      settings_(settings) {}

bool ServerProcess::LoadCertificates() {
  const absl::Status status = certificates_.LoadFirst();
  if (!status.ok()) console_.Error(std::string(status.message()), "see tls_certificate_file");
  return status.ok();
}

bool ServerProcess::OpenStore(const std::optional<StoreSettings>& store, const Instance& instance) {
  if (!store) return true;
  auto shared = SharedStores::Make(*store, settings_, instance, engine_, *server_, threads_, log_);
  if (!shared.ok()) {
    console_.Error(std::string(shared.status().message()));
    return false;
  }
  shared_ = *std::move(shared);
  return true;
}

void ServerProcess::TickParts(uint64_t idle_connection_bytes) {
  engine_.Tick();
  const base::Instant now = engine_.clock().Now();
  const net::Counters counters = server_->counters();
  connection_watch_.Step(counters, now);
  returned_memory_.Step(counters.buffer_bytes + counters.connections_open * idle_connection_bytes,
                        counters.buffers_shed);
  if (shared_ != nullptr) shared_->Tick(now);
  (void)spare_files_.Refill();
}

void ServerProcess::EndLoops() {
  listeners_.EndHandover();
  access_.End();
  shared_.reset();
  server_.reset();
}

int RunServer(const FileNeeds& needs, std::string_view hint, const Console& console,
              absl::FunctionRef<int(const FilePlan&, const Signals&)> run) {
  const auto files = AllowFiles(needs);
  if (!files.ok()) {
    console.Error(std::string(files.status().message()), hint);
    return kExitUsage;
  }
  // Made before any other thread, so that all threads inherit the blocked signals.
  const Signals signals;
  try {
    return run(*files, signals);
  } catch (const std::system_error& error) {
    console.Error(fmt::format("cannot start: {}", error.what()), hint);
    return kExitUnreachable;
  } catch (const std::bad_alloc&) {
    console.Error("there is no memory", "lower max_buckets, or raise `ulimit -v`");
    return kExitUnreachable;
  }
}

}  // namespace headgate::app
