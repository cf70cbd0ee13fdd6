#include "headgate/store/redis/cluster_slots.h"

#include <fmt/format.h>

#include "headgate/store/redis/key_slot.h"
#include "headgate/store/redis/number.h"

namespace headgate::store::redis {
namespace {

using Kind = wire::RespValue::Kind;

// The most bytes of a host name (RFC 1035).
constexpr size_t kHostBytesMax = 255;

absl::Status BadAnswer(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("the answer to CLUSTER SLOTS: {}", what));
}

bool IsNumber(const wire::RespValue& value, int64_t min, int64_t max) {
  return value.kind == Kind::kInteger && value.integer >= min && value.integer <= max;
}

}  // namespace

absl::StatusOr<std::vector<SlotRange>> ParseClusterSlots(const wire::RespValue& answer,
                                                         const std::string& asked_host) {
  if (answer.kind != Kind::kArray) return BadAnswer("no list");
  std::vector<SlotRange> ranges;
  for (const wire::RespValue& item : answer.items) {
    if (item.kind != Kind::kArray || item.items.size() < 3)
      return BadAnswer("a range is not a list of three or more items");
    const auto& fields = item.items;
    if (!IsNumber(fields[0], 0, kSlotCount - 1) ||
        !IsNumber(fields[1], fields[0].integer, kSlotCount - 1)) {
      return BadAnswer("a range of slots is not valid");
    }
    // The primary comes first, then its replicas.
    const wire::RespValue& primary = fields[2];
    if (primary.kind != Kind::kArray || primary.items.size() < 2)
      return BadAnswer("a node is not a list of two or more items");
    const wire::RespValue& host = primary.items[0];
    const bool has_host = host.kind == Kind::kBulk || host.kind == Kind::kSimple;
    if (!has_host && host.kind != Kind::kNull) return BadAnswer("the host of a node is not text");
    if (host.text.size() > kHostBytesMax || host.text.find('\0') != std::string::npos)
      return BadAnswer("a bad host");
    // Port 0: the node cannot be reached over our kind of connection (TLS or not).
    if (!IsNumber(primary.items[1], 1, 65535)) return BadAnswer("a node without a port");
    const bool host_known = has_host && !host.text.empty() && host.text != "?";
    ranges.push_back({.first = static_cast<uint16_t>(fields[0].integer),
                      .last = static_cast<uint16_t>(fields[1].integer),
                      .primary = {.host = host_known ? host.text : asked_host,
                                  .port = static_cast<uint16_t>(primary.items[1].integer)}});
  }
  return ranges;
}

std::optional<Redirect> ParseRedirect(std::string_view error, const std::string& asked_host) {
  const size_t slot_at = error.find(' ');
  if (slot_at == std::string_view::npos) return std::nullopt;
  const size_t target_at = error.find(' ', slot_at + 1);
  if (target_at == std::string_view::npos) return std::nullopt;
  const auto slot = ParseNumber(error.substr(slot_at + 1, target_at - slot_at - 1), kSlotCount - 1);
  const std::string_view target = error.substr(target_at + 1);
  // An IPv6 address has no brackets here.
  const size_t colon = target.rfind(':');
  if (!slot || colon == std::string_view::npos || colon > kHostBytesMax) return std::nullopt;
  const std::string_view host = target.substr(0, colon);
  const auto port = ParseNumber(target.substr(colon + 1), 65535);
  if (!port || *port == 0 ||
      host.find_first_of(std::string_view(" \0", 2)) != std::string_view::npos) {
    return std::nullopt;
  }
  return Redirect{.slot = static_cast<uint16_t>(*slot),
                  .target = {.host = host.empty() || host == "?" ? asked_host : std::string(host),
                             .port = static_cast<uint16_t>(*port)}};
}

}  // namespace headgate::store::redis
