// A running server: what `serve` and `sidecar` have in common, and the parts that answer clients.
// All parts share its rules, its store, its metrics, its admin address and its limits on
// connections.
//
//   control loop (main thread)   signals, the tick, files that are followed, sources of rules
//   loops of net::Server         connections, and everything that a request needs
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/access/access.h"
#include "headgate/app/runtime/admin_front.h"
#include "headgate/app/runtime/connection_watch.h"
#include "headgate/app/runtime/engine.h"
#include "headgate/app/runtime/file_plan.h"
#include "headgate/app/runtime/listeners.h"
#include "headgate/app/runtime/part.h"
#include "headgate/app/runtime/returned_memory.h"
#include "headgate/app/runtime/signals.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/base/clock.h"
#include "headgate/follow/certificates.h"
#include "headgate/follow/rules.h"
#include "headgate/follow/users.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/server.h"
#include "headgate/net/spare_files.h"
#include "headgate/observe/log.h"
#include "headgate/shared_store/instance.h"
#include "headgate/shared_store/shared_stores.h"
#include "headgate/watch/posted_editor.h"

namespace headgate::app {

class Process {
 public:
  // All must outlive the process.
  struct Options {
    const Configuration& configuration;
    const std::optional<StoreSettings>& store;  // empty: each instance counts by itself
    // False: no rule can ever apply, so the admin address has none, and nobody waits for them.
    bool has_rules = true;
    const FilePlan& files;
    const Console& console;
    const Signals& signals;
  };

  explicit Process(const Options& options);
  ~Process();
  Process(const Process&) = delete;

  // Before Run.
  void Add(std::unique_ptr<Part> part) { parts_.push_back(std::move(part)); }
  // Serves until the signal to stop, or until a successor takes over. Returns the exit code.
  int Run();

  // ---- For the parts.
  const Configuration& configuration() const { return options_.configuration; }
  const Settings& settings() const { return settings_; }
  const Console& console() const { return options_.console; }
  const base::Clock& system_clock() const { return system_clock_; }
  observe::Log& log() { return log_; }
  Engine& engine() { return engine_; }
  bool has_rules() const { return rules_.has_value(); }
  access::Access& access() { return access_; }
  Listeners& listeners() { return listeners_; }
  follow::Certificates& certificates() { return certificates_; }
  net::EventLoop& control() { return control_; }
  uint32_t loop_count() const { return loop_count_; }
  net::EventLoop& loop(uint32_t index) { return server_->loop(index); }
  net::Counters connections() const { return server_->counters(); }
  // The answers of the admin address, which other addresses may give too.
  const front::admin::AdminSources& admin_sources() const { return admin_.sources; }

  // From Begin on. The store is null without a shared one.
  shared_store::SharedStores* shared() { return shared_.get(); }
  limiter::Checker& checker(uint32_t loop) { return *checkers_.at(loop); }
  AdminFront& admin(uint32_t loop) { return *admin_fronts_.at(loop); }

 private:
  front::admin::AdminSources AdminSourcesOf();

  // The calls of a start. Each returns false if it fails; the error is then on the console.
  bool Load();
  bool LoadRules();
  bool LoadUsers();
  bool OpenStore();
  bool FindPredecessor();
  bool ListenOnAll();
  bool AwaitSuccessor();
  // Makes the objects that live on the loops.
  void Begin();
  // Never fails. If there is a predecessor, waits until the store is connected, before this process
  // accepts.
  void AwaitStore();

  // Runs until the signal to stop or a successor, or for at most this long.
  void RunUntilStopped(std::optional<base::Duration> at_most = std::nullopt);
  void Reload();
  void Tick();
  // Lets the requests in progress end. Returns the exit code.
  int Stop();
  void LeaveLoops();
  void Collect(observe::Sink& sink);

  const Options options_;
  const Settings& settings_;
  const std::string_view name_;  // "server" or "sidecar"
  const uint32_t loop_count_;
  net::SpareFiles spare_files_;  // opened first, so that their numbers are low
  base::SystemClock system_clock_;
  observe::Log log_;
  ConnectionWatch connection_watch_;
  shared_store::InstanceWatch instance_watch_{log_};
  ReturnedMemory returned_memory_;
  Engine engine_;
  net::EventLoop control_{system_clock_};
  follow::Certificates certificates_;
  access::Access access_;
  follow::Users users_;
  const shared_store::Instance instance_;
  std::optional<follow::Rules> rules_;
  std::optional<watch::EditorThread> editor_;
  std::atomic<bool> draining_{false};
  const AdminOptions admin_;
  std::optional<net::Server> server_;  // until the destructor
  Listeners listeners_;
  // They live on the loops. Null: each process counts by itself.
  std::unique_ptr<shared_store::SharedStores> shared_;
  std::vector<std::unique_ptr<limiter::Checker>> checkers_;
  std::vector<std::unique_ptr<AdminFront>> admin_fronts_;
  std::vector<std::unique_ptr<Part>> parts_;
};

// The open files of a process with these settings, without those of its parts alone.
FileNeeds FileNeedsOf(const Settings& settings);

// Divides the open files, and calls `run`. Returns the exit status. If the system allows too few
// files or too little memory, the error is on the console.
int RunServer(const FileNeeds& needs, const Console& console,
              absl::FunctionRef<int(const FilePlan&, const Signals&)> run);

}  // namespace headgate::app
