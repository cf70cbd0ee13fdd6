#include "headgate/app/tools/store_command.h"

#include <fmt/format.h>

#include <csignal>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/app/settings/arguments.h"
#include "headgate/base/clock.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/limit_text.h"
#include "headgate/rule/quote.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/open/open_backend.h"

namespace headgate::app {
namespace {

constexpr std::string_view kUsage =
    "headgate store create-table 'dynamodb://TABLE?region=eu-west-1'";

// Whether the command or the table is at fault, and not the way to the store.
bool IsUsage(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status);
}

constexpr std::string_view kUsageOfShow =
    "headgate store show redis://127.0.0.1:6379 'hg:{r|edge|api_key=k1#0}'";

// The state of the bucket at `now`, on the clock of this machine.
std::string TextOf(store::StoredBucket bucket, base::Instant now) {
  const algorithm::Limit& limit = bucket.limit;
  now = std::max(now, bucket.state.seen);
  const auto decide = [&] {
    if (limit.denies_all()) return algorithm::DenyAll(limit, 0);
    return algorithm::KeepsLeases(limit.algorithm())
               ? algorithm::DecideLeased(limit, bucket.state, bucket.leases, 0, now)
               : Decide(limit, bucket.state, bucket.hits, 0, now);
  };
  const algorithm::Decision decision = decide();
  uint64_t unspent = 0;
  for (const algorithm::Lease& lease : bucket.leases) unspent += lease.granted - lease.reported;
  return fmt::format("limit       {}\nremaining   {}\nfull again  in {}\non lease    {}\n",
                     rule::Describe(limit), decision.remaining,
                     rule::FormatDuration(decision.reset_after), unspent);
}

int Show(const store::BackendOptions& options, const std::string& name, base::Duration timeout,
         const Console& console) {
  const auto bytes = store::open::ReadBucket(options, name, timeout);
  if (!bytes.ok()) {
    console.Error(rule::Printable(std::string(bytes.status().message())), kUsageOfShow);
    return IsUsage(bytes.status()) || absl::IsDataLoss(bytes.status()) ? kExitUsage
                                                                       : kExitUnreachable;
  }
  if (bytes->empty()) {
    console.out << "no bucket: the key has its full limit\n";
    return kExitOk;
  }
  std::optional<store::StoredBucket> bucket = store::ParseBucket(*bytes);
  if (!bucket) {
    console.Error("the value is not a bucket, or it is damaged", kUsageOfShow);
    return kExitUsage;
  }
  const base::SystemClock clock;
  console.out << TextOf(*std::move(bucket), base::Instant::FromNanos(clock.WallNow().ns));
  return kExitOk;
}

}  // namespace

int Store(const std::vector<std::string>& arguments, const Console& console) {
  std::string ca_file;
  std::string timeout;
  std::vector<std::string> words;
  const ArgumentSpec spec{.command = "store",
                          .flags = {{"--ca-file", &ca_file}, {"--timeout", &timeout}},
                          .others = &words};
  if (!ParseArguments(spec, arguments, console)) return kExitUsage;
  const bool shows = words.size() == 3 && words[0] == "show";
  if (!shows && (words.size() != 2 || words[0] != "create-table")) {
    console.Error(
        "`headgate store` takes the word create-table and a URL, or show, a URL and a name",
        words.empty() || words[0] != "show" ? kUsage : kUsageOfShow);
    return kExitUsage;
  }
  if (timeout.empty()) timeout = shows ? "5s" : "2m";
  const auto patience = ParseTimeout(timeout, "--timeout 2m", console);
  if (!patience) return kExitUsage;
  store::BackendOptions options{.url = words[1], .ca_file = ca_file};
  options.calls = store::open::DefaultCalls(options.url);
  for (const store::OptionProblem& problem : store::open::CheckOptions(options)) {
    console.Error(problem.what, !problem.hint.empty() ? problem.hint
                                : shows               ? kUsageOfShow
                                                      : kUsage);
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);  // client/http/client.h
  if (shows) return Show(options, words[2], *patience, console);
  const auto made = store::open::CreateTable(options, *patience);
  if (!made.ok()) {
    console.Error(std::string(made.status().message()),
                  absl::IsPermissionDenied(made.status())
                      ? "docs/guides/strict-dynamodb.md lists the rights that this needs"
                      : kUsage);
    return IsUsage(made.status()) ? kExitUsage : kExitUnreachable;
  }
  console.out << *made << '\n';
  return kExitOk;
}

}  // namespace headgate::app
