#include "headgate/app/sidecar/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "headgate/replay/share_plan.h"
#include "headgate/rule/quote.h"
#include "headgate/share/client_names.h"

namespace headgate::app {
namespace {

constexpr size_t kRows = 20;
constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr size_t kNameWidth = 32;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of a file in UTF-8 from Windows

// The program that unpacks a file with this beginning; empty if it is not compressed.
std::string_view UnpackerOf(std::string_view beginning) {
  if (beginning.starts_with("\x1f\x8b")) return "zcat";
  if (beginning.starts_with("\x28\xb5\x2f\xfd")) return "zstdcat";
  if (beginning.starts_with("\xfd\x37zXZ")) return "xzcat";
  // The third byte is the size of the blocks.
  return beginning.starts_with("BZh") && beginning.substr(4).starts_with("1AY&SY") ? "bzcat" : "";
}

// Calls `take` with each line, without its end, as long as it returns true. A line that is too long
// to be read is passed cut off; it is then still longer than the readers accept.
template <typename Take>
void ForEachLine(std::istream& in, const Take& take) {
  std::vector<char> block(kBlockBytes);
  std::string line;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    std::string_view rest(block.data(), static_cast<size_t>(in.gcount()));
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (line.size() <= replay::kLogLineBytesMax) line.append(rest.substr(0, end));
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
      if (!take(line)) return;
      line.clear();
    }
  }
  if (!line.empty()) take(line);
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string Row(std::string_view name, const replay::ClientPlan& plan) {
  return fmt::format("{:<32} {:>10} {:>10} {:>7.1f} % {:>14}\n", name, plan.requests, plan.refused,
                     Percent(plan.refused, plan.requests),
                     plan.most_in_cycle == 0 ? std::string() : std::to_string(plan.most_in_cycle));
}

std::string NameOf(const replay::ClientPlan& plan) {
  if (plan.name.empty()) return "(no client)";
  return rule::Printable(plan.name).substr(0, kNameWidth);
}

std::string TableOf(const replay::SharePlan& plan) {
  std::string text = fmt::format("{:<32} {:>10} {:>10} {:>9} {:>14}\n", "client", "requests",
                                 "refused", "", "most in cycle");
  replay::ClientPlan others = plan.others;
  for (size_t i = 0; i < plan.clients.size(); ++i) {
    if (i < kRows) {
      text += Row(NameOf(plan.clients[i]), plan.clients[i]);
      continue;
    }
    others.requests += plan.clients[i].requests;
    others.refused += plan.clients[i].refused;
  }
  if (others.requests > 0) text += Row("all others", others);
  return text;
}

std::string SummaryOf(const replay::SharePlan& plan, base::Duration cycle) {
  const auto seconds = [](base::Duration time) {
    return std::chrono::duration<double>(time).count();
  };
  std::string text = fmt::format(
      "\n{} of {} requests refused ({:.1f} %), in {} of {} cycles with requests; the log covers "
      "{:.0f} s\n",
      plan.refused, plan.requests, Percent(plan.refused, plan.requests), plan.cycles_refusing,
      plan.cycles, seconds(plan.last - plan.first));
  text += fmt::format(
      "the busiest cycle of {:g} s had {} requests; 99 % of the cycles had at most {}\n",
      seconds(cycle), plan.most_in_cycle, plan.capacity_for_most);
  return text;
}

}  // namespace

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
  bool is_first = true;
  std::string_view unpacker;
  ForEachLine(file == "-" ? std::cin : log, [&](std::string_view line) {
    if (std::exchange(is_first, false)) {
      unpacker = UnpackerOf(line);
      if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    }
    if (const auto request = reader.Read(line)) {
      const std::string_view name = names.NameOf(request->client, buffer);
      planner->Take(request->client, request->at, names.WeightOf(name));
    } else {
      ++unread;
    }
    return unpacker.empty();
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
  console.out << TableOf(plan) << SummaryOf(plan, options.pool.cycle);
  if (plan.late > 0)
    console.out << fmt::format(
        "{} lines were older than the line before; they count as if at its time\n", plan.late);
  if (unread > 0)
    console.err << fmt::format("{} lines without a time or a client were left out\n", unread);
  return console.Finish(kExitOk);
}

}  // namespace headgate::app
