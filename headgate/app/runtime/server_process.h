// The parts that every server process has, whatever it serves: log, engine, certificates, event
// loops with their sockets, the shared store.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/access/access.h"
#include "headgate/app/runtime/connection_watch.h"
#include "headgate/app/runtime/engine.h"
#include "headgate/app/runtime/file_plan.h"
#include "headgate/app/runtime/instance.h"
#include "headgate/app/runtime/listeners.h"
#include "headgate/app/runtime/returned_memory.h"
#include "headgate/app/runtime/shared_stores.h"
#include "headgate/app/runtime/signals.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/settings.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/base/clock.h"
#include "headgate/follow/certificates.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/server.h"
#include "headgate/net/spare_files.h"
#include "headgate/observe/log.h"

namespace headgate::app {

class ServerProcess {
 public:
  ServerProcess(const ServerProcess&) = delete;

 protected:
  // All arguments must outlive the process.
  ServerProcess(const Settings& settings, const FilePlan& files, const Console& console,
                const Signals& signals);
  ~ServerProcess() = default;

  // The calls of a start. Each returns false if it fails; the error is then on the console.
  // OpenStore does nothing without a store.
  bool LoadCertificates();
  bool OpenStore(const std::optional<StoreSettings>& store, const Instance& instance);

  // Call it every second. `idle_connection_bytes` is the memory of an idle connection, which is not
  // counted among the buffers.
  void TickParts(uint64_t idle_connection_bytes = 0);

  // Ends the handover, closes all connections, and destroys the loops and what lives on them. The
  // destructor of the derived class calls it, because the loops use its members.
  void EndLoops();

  const FilePlan& files_;
  const Console& console_;
  const Signals& signals_;
  const uint32_t threads_;
  net::SpareFiles spare_files_;  // opened first, so that their numbers are low
  base::SystemClock system_clock_;
  observe::Log log_;
  ConnectionWatch connection_watch_{log_, files_.connections_lowered};
  ReturnedMemory returned_memory_;
  Engine engine_;
  // Runs on the main thread: signals, the tick, and the rule sources.
  net::EventLoop control_{system_clock_};
  follow::Certificates certificates_;
  access::Access access_;
  std::optional<net::Server> server_;  // there until EndLoops
  Listeners listeners_;
  // Lives on the loops. Null: each process counts by itself.
  std::unique_ptr<SharedStores> shared_;

 private:
  const Settings& settings_;
};

// Divides the open files, and calls `run`. Returns the exit status. If the system allows too few
// files or too little memory, the error is on the console; `hint` is on files.
int RunServer(const FileNeeds& needs, std::string_view hint, const Console& console,
              absl::FunctionRef<int(const FilePlan&, const Signals&)> run);

}  // namespace headgate::app
