// Reads any bytes as a pool. A pool that can be read has one form in each version, and can decide.
#include "headgate/algorithm/fair_share_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headgate/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate;
  using algorithm::FairShareState;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto pool = FairShareState::Parse(bytes);
  if (!pool) return 0;
  std::string written;
  FairShareState::Append(*pool, written);
  // A pool of an older version is written in the newest one.
  if (written.front() == bytes.front()) {
    HEADGATE_CHECK(written == bytes);
  } else {
    const auto upgraded = FairShareState::Parse(written);
    HEADGATE_CHECK(upgraded.has_value());
    std::string again;
    FairShareState::Append(*upgraded, again);
    HEADGATE_CHECK(again == written);
  }
  base::Instant now = pool->cycle().start;
  for (int step = 0; step < 6; ++step) {
    const std::string_view name = step % 2 == 0 ? "a" : "new";
    pool->AddDemand({.client = name, .cost = 5}, now);
    pool->ReclaimFor(name, now);
    const uint64_t room = pool->RoomFor(name);
    HEADGATE_CHECK(pool->TakePart(name, 3) == std::min<uint64_t>(room, 3));
    pool->ReturnPart(name, 1, pool->cycle().number);
    pool->Decide({.client = name}, now);
    now = base::Clamp(now + pool->options().cycle / 3);
  }
  // Later times are beyond the bounds.
  if (now + 3 * pool->options().cycle > base::kInstantMax) return 0;
  std::string after;
  FairShareState::Append(*pool, after);
  HEADGATE_CHECK(FairShareState::Parse(after).has_value());
  return 0;
}
