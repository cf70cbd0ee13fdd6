#include "headgate/app/serve/fronts_part.h"

#include <algorithm>
#include <utility>

#include "headgate/app/runtime/resident_memory.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/rule_files.h"

namespace headgate::app {

FrontsPart::FrontsPart(Process& process, FrontFiles files)
    : process_(process),
      started_at_(process.system_clock().BootNow()),
      options_(process.settings(), process.admin_sources(), process.engine(), process.access()),
      mappings_(process.settings().auth, process.settings().auth_header, options_.mappings,
                process.control(), process.log()) {
  options_.log = &process.log();
  options_.partition_secret = std::move(files.partition_secret);
  options_.refusals = std::move(files.refusals);
  options_.reservation_secret = std::move(files.reservation_secret);
  options_.figures = [this] { return Figures(); };
}

front::resp::ServerFigures FrontsPart::Figures() const {
  const net::Counters connections = process_.connections();
  front::resp::ServerFigures figures{
      .uptime = process_.system_clock().BootNow() - started_at_,
      .memory_bytes = ResidentBytes(),
      .connections_open = connections.connections_open,
      .connections_max = process_.settings().max_connections,
      .connections_accepted = connections.connections_accepted,
      .connections_refused = connections.refused_total_limit + connections.refused_address_limit,
      .buckets = process_.engine().store().stats().buckets};
  for (const auto& fronts : fronts_) figures.commands += fronts->resp_counters().commands.value();
  return figures;
}

bool FrontsPart::Load() {
  const std::vector<rule::Problem> problems = mappings_.LoadFirst();
  SayProblems(problems, process_.configuration(), "auth", process_.console());
  return problems.empty();
}

void FrontsPart::Begin() {
  for (uint32_t i = 0; i < process_.loop_count(); ++i) {
    Fronts& fronts = *fronts_.emplace_back(
        std::make_unique<Fronts>(options_, process_.checker(i), process_.loop(i), i));
    process_.admin(i).CountAs(fronts.resp_meter(), fronts.http_meter());
  }
}

bool FrontsPart::Listen() {
  const Settings& settings = process_.settings();
  const auto resp = [](Fronts& fronts, const Fronts::Form&) { return fronts.OnlyResp(); };
  return ListenOn(settings.listen, &Fronts::All) && ListenOn(settings.listen_resp, resp) &&
         ListenOn(settings.listen_http, &Fronts::OnlyHttp) &&
         ListenOn(settings.listen_spoe, &Fronts::OnlySpoe);
}

bool FrontsPart::ListenOn(const std::vector<std::string>& addresses, const Chooser& chooser) {
  return std::ranges::all_of(addresses, [&](const std::string& text) {
    const ListenAddress address = *ParseListenAddress(text);
    const Fronts::Form form{.dialect = address.fields, .refusal_file = address.refusal_file};
    return process_.listeners().Listen(address, Listeners::Reveals::kState, [&](uint32_t loop) {
      return chooser(*fronts_[loop], form);
    });
  });
}

void FrontsPart::Collect(observe::Sink& sink, PartSums& sums) {
  using observe::Metric;
  uint64_t resp = 0;
  uint64_t http = 0;
  uint64_t spoe = 0;
  for (uint32_t i = 0; i < fronts_.size(); ++i) {
    const Fronts& fronts = *fronts_[i];
    for (const front::mux::Counters* begun : {&fronts.sessions(), &process_.admin(i).sessions()}) {
      resp += begun->resp.value();
      http += begun->http.value();
      spoe += begun->spoe.value();
    }
    sums.verdicts.Add(fronts.auth_counters());
    sums.http2.push_back(&fronts.http2_counters());
  }
  sink.Set(Metric::kSessions, {"resp"}, resp);
  sink.Set(Metric::kSessions, {"http"}, http);
  sink.Set(Metric::kSessions, {"spoe"}, spoe);
  sums.judges = true;
  sums.repeats_forgotten += options_.repeats.forgotten();
  sums.mappings.push_back(&mappings_);
}

}  // namespace headgate::app
