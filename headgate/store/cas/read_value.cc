#include "headgate/store/cas/read_value.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "headgate/store/cas/envelope.h"

namespace headgate::store::cas {
namespace {

constexpr base::Duration kBetweenAttempts = std::chrono::milliseconds(50);

}  // namespace

absl::StatusOr<std::optional<Versioned>> ReadValue(VersionedStore& service, net::EventLoop& loop,
                                                   std::string_view name, base::Duration timeout) {
  const base::BootTime end = loop.Now() + timeout;
  while (true) {
    std::optional<absl::StatusOr<std::optional<Versioned>>> answer;
    service.Get(name, end, [&](auto given) { answer = std::move(given); });
    // The service answers at the deadline at the latest.
    loop.RunUntil([&] { return answer.has_value(); }, end - loop.Now() + std::chrono::seconds(1));
    if (!answer) return absl::DeadlineExceededError("the store does not answer");
    const base::Duration left = end - loop.Now();
    if (!absl::IsUnavailable(answer->status()) || left <= kBetweenAttempts) return *answer;
    loop.RunUntil([] { return false; }, kBetweenAttempts);
  }
}

absl::StatusOr<std::string> ReadBucket(VersionedStore& service, net::EventLoop& loop,
                                       std::string_view name, base::Duration timeout) {
  HEADGATE_ASSIGN_OR_RETURN(const auto found, ReadValue(service, loop, name, timeout));
  if (!found) return "";
  auto envelope = ParseEnvelope(found->bytes);
  if (!envelope) return absl::DataLossError("the value is damaged: its checksum is wrong");
  return std::move(envelope->bucket);
}

}  // namespace headgate::store::cas
