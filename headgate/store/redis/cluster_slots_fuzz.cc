// Reads any reply and any error text as a map of slots. It is refused, or the map has only slots
// that exist, and ports to connect to.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/redis/cluster_slots.h"
#include "headgate/store/redis/cluster_topology.h"
#include "headgate/store/redis/pending_call.h"
#include "headgate/wire/resp_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate;
  using namespace headgate::store::redis;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto redirect = ParseRedirect(text, "asked")) {
    HEADGATE_CHECK(redirect->slot < kSlotCount && redirect->target.port != 0 &&
                   !redirect->target.host.empty());
  }
  wire::RespReader reader(kReplyBounds);
  size_t consumed = 0;
  if (reader.Read(text, consumed) != wire::RespReader::Step::kValue) return 0;
  const auto ranges = ParseClusterSlots(reader.value(), "asked");
  if (!ranges.ok()) return 0;
  for (const SlotRange& range : *ranges) {
    HEADGATE_CHECK(range.first <= range.last && range.last < kSlotCount);
    HEADGATE_CHECK(range.primary.port != 0 && !range.primary.host.empty());
  }
  ClusterTopology topology({{.host = "asked", .port = 1}}, 1);
  HEADGATE_CHECK(topology.Ask(base::BootTime{1}).has_value());
  topology.OnAnswer(reader.value(), base::BootTime{2});
  HEADGATE_CHECK(topology.Find("{a}").value_or(0) < topology.servers().size());
  return 0;
}
