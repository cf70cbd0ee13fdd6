#include "headgate/app/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "headgate/app/engine.h"
#include "headgate/app/file_io.h"
#include "headgate/app/fronts.h"
#include "headgate/app/random_secret.h"
#include "headgate/app/serve_arguments.h"
#include "headgate/app/signals.h"
#include "headgate/net/server.h"

namespace headgate::app {
namespace {

constexpr base::Duration kTick = std::chrono::seconds(1);
// Files that are open besides connections.
constexpr uint64_t kOtherFiles = 64;

uint32_t ThreadsOf(const Settings& settings) {
  if (settings.threads != 0) return static_cast<uint32_t>(settings.threads);
  return std::max(1u, std::thread::hardware_concurrency());
}

net::ServerOptions ServerOptionsOf(const Settings& settings) {
  return {.threads = ThreadsOf(settings),
          .connections_max = static_cast<uint32_t>(settings.max_connections),
          .connections_per_address_max = static_cast<uint32_t>(settings.max_connections_per_address),
          .request_timeout = settings.request_timeout,
          .idle_timeout = settings.idle_timeout,
          .write_timeout = settings.write_timeout};
}

}  // namespace

int Serve(const std::vector<std::string>& arguments, const Console& console) {
  const auto parsed = ParseServeArguments(arguments, console);
  if (!parsed) return kExitUsage;
  const auto configuration = Configure(*parsed, ::getenv, console);
  if (!configuration) return kExitUsage;
  if (parsed->print_config) {
    console.out << (parsed->json ? PrintConfigurationJson(*configuration) : PrintConfiguration(*configuration));
    return kExitOk;
  }
  const Settings& settings = configuration->settings;
  const Signals signals;
  const base::SystemClock system_clock;
  observe::Log log({.level_min = *observe::LevelByName(settings.log_level), .secret = RandomSecret()}, system_clock);
  Engine engine(settings, ThreadsOf(settings), system_clock, log);
  net::Access access;
  const FrontNames names(engine.metrics());
  std::vector<std::unique_ptr<Fronts>> fronts;
  for (uint32_t i = 0; i < ThreadsOf(settings); ++i) {
    fronts.push_back(std::make_unique<Fronts>(engine, names, access, system_clock, i));
  }
  net::Server server(ServerOptionsOf(settings), engine.clock());
  for (const std::string& text : settings.listen) {
    const auto bound = server.Listen(*net::ParseEndpoint(text), [&](uint32_t loop) {
      return net::SessionFactories{.resp = fronts[loop]->Resp(), .http = {}};
    });
    if (!bound.ok()) {
      console.Error(std::string(bound.status().message()));
      return kExitUnreachable;
    }
    console.out << "listening on " << bound->ToString() << std::endl;
  }
  server.Start();
  while (signals.Wait(kTick) != Signals::Kind::kStop) engine.Tick();
  server.Drain(settings.drain_timeout);
  engine.WriteLastSnapshot();
  return kExitOk;
}

}  // namespace headgate::app
