#include "headgate/store/open/open_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/store/bucket_codec.h"
#include "headgate/store/dynamodb/dynamodb_backend.h"
#include "headgate/store/redis/redis_backend.h"
#include "headgate/store/zookeeper/zookeeper_backend.h"

namespace headgate::store::open {
namespace {

// A kind of store. A scheme is the part of the URL before a '+' or "://".
struct Adapter {
  std::span<const std::string_view> schemes;
  std::string_view url_examples;
  bool strict;  // decides by compare-and-set
  CallOptions default_calls;
  size_t value_bytes_max;
  decltype(&CheckOptions) check;
  decltype(&OpenBackend) open;
  decltype(&ReadBucket) read_bucket;
  // Null if the store needs no table.
  decltype(&CreateTable) create_table = nullptr;
};

constexpr Adapter kAdapters[] = {
    {redis::kSchemes, redis::kUrlExamples, false, CallOptions{}, kValueBytesMax,
     &redis::CheckOptions, &redis::OpenBackend, &redis::ReadBucket},
    {zookeeper::kSchemes, zookeeper::kUrlExamples, true, zookeeper::kDefaultCalls,
     zookeeper::kNodeBytesMax, &zookeeper::CheckOptions, &zookeeper::OpenBackend,
     &zookeeper::ReadBucket},
    {dynamodb::kSchemes, dynamodb::kUrlExamples, true, dynamodb::kDefaultCalls,
     dynamodb::kItemBytesMax, &dynamodb::CheckOptions, &dynamodb::OpenBackend,
     &dynamodb::ReadBucket, &dynamodb::CreateTable},
};

const Adapter* FindAdapter(std::string_view scheme) {
  const auto found =
      std::find_if(std::begin(kAdapters), std::end(kAdapters), [&](const Adapter& adapter) {
        return std::count(adapter.schemes.begin(), adapter.schemes.end(), scheme) > 0;
      });
  return found == std::end(kAdapters) ? nullptr : found;
}

std::string_view SchemeOf(std::string_view url) {
  const std::string_view scheme = url.substr(0, std::min(url.find("://"), url.size()));
  return scheme.substr(0, std::min(scheme.find('+'), scheme.size()));
}

// The message contains nothing of the URL except its scheme: the rest may contain a password.
std::string WhyUnknown(std::string_view url) {
  if (url.find("://") == std::string_view::npos) return "'://' is missing";
  std::vector<std::string_view> known;
  for (const Adapter& adapter : kAdapters)
    known.insert(known.end(), adapter.schemes.begin(), adapter.schemes.end());
  return fmt::format("'{}' is not known; the schemes are {}", SchemeOf(url),
                     fmt::join(known, ", "));
}

std::string UrlHint() {
  std::string hint = "for example ";
  for (const Adapter& adapter : kAdapters) {
    if (&adapter != kAdapters) hint += ", or ";
    hint += adapter.url_examples;
  }
  return hint;
}

}  // namespace

bool IsStrict(std::string_view url) {
  const Adapter* const adapter = FindAdapter(SchemeOf(url));
  return adapter != nullptr && adapter->strict;
}

uint64_t LogRequestsMax(std::string_view url) {
  // The name of the bucket, its limit, and the envelope of a compare-and-set store.
  constexpr size_t kBesideHits = 4096;
  const Adapter* const adapter = FindAdapter(SchemeOf(url));
  if (adapter == nullptr || !adapter->strict) return kHitsMax;
  return std::min<uint64_t>(kHitsMax, (adapter->value_bytes_max - kBesideHits) / kHitBytes);
}

CallOptions DefaultCalls(std::string_view url) {
  const Adapter* const adapter = FindAdapter(SchemeOf(url));
  return adapter == nullptr ? CallOptions{} : adapter->default_calls;
}

std::vector<OptionProblem> CheckOptions(const BackendOptions& options) {
  const Adapter* const adapter =
      options.url.find("://") == std::string::npos ? nullptr : FindAdapter(SchemeOf(options.url));
  if (adapter == nullptr) return {{BackendOption::kUrl, WhyUnknown(options.url), UrlHint()}};
  return adapter->check(options);
}

absl::StatusOr<std::unique_ptr<Backend>> OpenBackend(const BackendOptions& options,
                                                     std::span<net::EventLoop* const> loops,
                                                     const BackendContext& context) {
  const Adapter* const adapter = FindAdapter(SchemeOf(options.url));
  if (adapter == nullptr) return absl::InvalidArgumentError(WhyUnknown(options.url));
  return adapter->open(options, loops, context);
}

absl::StatusOr<std::string> ReadBucket(const BackendOptions& options, std::string_view name,
                                       base::Duration timeout) {
  const std::vector<OptionProblem> problems = CheckOptions(options);
  if (!problems.empty()) return absl::InvalidArgumentError(problems.front().what);
  return FindAdapter(SchemeOf(options.url))->read_bucket(options, name, timeout);
}

absl::StatusOr<std::string> CreateTable(const BackendOptions& options, base::Duration timeout) {
  const Adapter* const adapter = FindAdapter(SchemeOf(options.url));
  if (adapter == nullptr) return absl::InvalidArgumentError(WhyUnknown(options.url));
  if (adapter->create_table == nullptr)
    return absl::InvalidArgumentError("this kind of store needs no table");
  return adapter->create_table(options, timeout);
}

}  // namespace headgate::store::open
