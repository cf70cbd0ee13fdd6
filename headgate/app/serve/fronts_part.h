// The part of a server that answers questions: the fronts of all event loops, and what they share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headgate/app/runtime/part.h"
#include "headgate/app/runtime/process.h"
#include "headgate/app/serve/fronts.h"
#include "headgate/base/clock.h"
#include "headgate/follow/mappings.h"
#include "headgate/front/resp/context.h"

namespace headgate::app {

// The contents of the files that the settings of the fronts name.
struct FrontFiles {
  std::string partition_secret{};
  std::string reservation_secret{};
  // The bodies of refusals, by file; the default has the name "".
  std::map<std::string, std::shared_ptr<const rule::Refusal>> refusals{};
};

class FrontsPart final : public Part {
 public:
  // The process must outlive this object.
  FrontsPart(Process& process, FrontFiles files);

  bool Load() override;
  void Begin() override;
  bool Listen() override;
  void Reload() override { mappings_.Reload(); }
  void Collect(observe::Sink& sink, PartSums& sums) override;

 private:
  using Chooser = std::function<net::SessionChooser(Fronts&, const Fronts::Form&)>;

  front::resp::ServerFigures Figures() const;
  bool ListenOn(const std::vector<std::string>& addresses, const Chooser& chooser);

  Process& process_;
  const base::BootTime started_at_;
  FrontOptions options_;
  follow::Mappings mappings_;
  std::vector<std::unique_ptr<Fronts>> fronts_;  // by loop
};

}  // namespace headgate::app
