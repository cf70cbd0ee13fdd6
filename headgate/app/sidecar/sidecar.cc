#include "headgate/app/sidecar/sidecar.h"

#include <memory>

#include "headgate/app/runtime/process.h"
#include "headgate/app/sidecar/plan.h"
#include "headgate/app/sidecar/proxy_part.h"
#include "headgate/app/sidecar/settings.h"

namespace headgate::app {
int Sidecar(const std::vector<std::string>& arguments, const Console& console) {
  HoldReload();
  const auto settings = ReadSidecarSettings(arguments, ProcessEnvironment(), console);
  if (!settings) return kExitUsage;
  if (settings->printed) {
    console.out << *settings->printed;
    return console.Finish(kExitOk);
  }
  if (settings->plan)
    return SidecarPlan(settings->plan->log, settings->plan->client, settings->share, console);
  FileNeeds needs = FileNeedsOf(settings->values());
  AddFileNeeds(*settings, needs);
  return RunServer(needs, console, [&](const FilePlan& files, const Signals& signals) {
    Process process({.configuration = settings->configuration,
                     .store = settings->store,
                     .has_rules = settings->has_rules(),
                     .files = files,
                     .console = console,
                     .signals = signals});
    process.Add(std::make_unique<ProxyPart>(process, *settings));
    return process.Run();
  });
}

}  // namespace headgate::app
