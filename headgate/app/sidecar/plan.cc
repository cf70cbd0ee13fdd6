#include "headgate/app/sidecar/plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>
#include <system_error>

#include "headgate/replay/log_lines.h"
#include "headgate/replay/plan_text.h"
#include "headgate/replay/share_plan.h"
#include "headgate/rule/quote.h"
#include "headgate/share/client_names.h"

namespace headgate::app {

int SidecarPlan(const std::string& file, const replay::ClientPlace& client,
                const share::ShareOptions& options, const Console& console) {
  if (options.find_capacity) {
    console.Error("--plan needs a capacity",
                  "a log does not show what the upstream could do: "
                  "--plan access.log --capacity 40 --cycle 10s");
    return kExitUsage;
  }
  std::ifstream log;
  if (file != "-") {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored)) {
      console.Error(fmt::format("{} is a directory", rule::Quote(file)),
                    "--plan FILE, or - for stdin: cat logs/*.log | headgate sidecar --plan -");
      return kExitUsage;
    }
    log.open(file, std::ios::binary);
    if (!log) {
      console.Error(fmt::format("cannot open {}", rule::Quote(file)),
                    "--plan FILE, or - for stdin");
      return kExitUsage;
    }
  }
  auto planner = replay::SharePlanner::Make(
      options.pool, options.without_id == share::WithoutId::kRefuse ? replay::Anonymous::kRefused
                                                                    : replay::Anonymous::kShared);
  if (!planner.ok()) {
    console.Error(std::string(planner.status().message()), "`headgate help sidecar`");
    return kExitUsage;
  }
  replay::AccessLogReader reader(client);
  const share::ClientNames names(options);
  share::ClientNames::Buffer buffer;
  uint64_t unread = 0;
  const std::string_view unpacker =
      replay::ForEachLine(file == "-" ? std::cin : log, [&](std::string_view line) {
        if (const auto request = reader.Read(line)) {
          const std::string_view name = names.NameOf(request->client, buffer);
          planner->Take(request->client, request->at, names.WeightOf(name));
        } else {
          ++unread;
        }
      });
  if (!unpacker.empty()) {
    console.Error(fmt::format("{} is compressed", rule::Quote(file)),
                  fmt::format("{} FILE | headgate sidecar --plan -", unpacker));
    return kExitUsage;
  }
  const replay::SharePlan plan = planner->Finish();
  if (plan.requests == 0) {
    console.Error(fmt::format("none of {} lines has a time and a client", unread),
                  "--plan-client says where the client's id is: 1 is the first word, -1 the last; "
                  "a name is a member of JSON");
    return kExitUsage;
  }
  console.out << replay::TextOf(plan, options.pool.cycle);
  if (plan.late > 0)
    console.out << fmt::format(
        "{} lines were older than the line before; they count as if at its time\n", plan.late);
  if (unread > 0)
    console.err << fmt::format("{} lines without a time or a client were left out\n", unread);
  return console.Finish(kExitOk);
}

}  // namespace headgate::app
