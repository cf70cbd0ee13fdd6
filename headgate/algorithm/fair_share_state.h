// The bytes of a pool (fair_share_pool.h), for instances that share it through a store: everything
// that decisions need, without the counts.
//
//   version 4 · settings · times · amounts · clients, in order of arrival
//
// Numbers are LEB128: seven bits per byte, the lowest first. Each pool has one form only. There is
// no checksum; the envelope of a value has one. A pool of four clients takes about 300 bytes, one
// of 1,024 clients whose names have 20 bytes about 90 KiB. Versions 1 to 3 are read, too. The first
// had no amounts kept for clients (fair_share_lending.cc). In the second a client had three roots
// of its even share at once. In the third a claim was a whole number.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/algorithm/fair_share_pool.h"

namespace headgate::algorithm {

class FairShareState {
 public:
  // Clients with longer names must not be in a pool that is stored.
  static constexpr size_t kNameBytesMax = 128;

  // The pool must have been asked or advanced before, so that its cycle has begun.
  static void Append(const FairSharePool& pool, std::string& out);

  // A pool whose decisions are those of the stored one; its counts begin at 0. Nothing if `bytes`
  // are not a pool of a known version, or hold values outside the bounds. Stores are not trusted.
  static std::optional<FairSharePool> Parse(std::string_view bytes);

 private:
  using Client = FairSharePool::Client;

  template <typename Coder, typename Options>
  static void CodeSettings(Coder& coder, Options& options, uint8_t version);
  template <typename Coder, typename Pool>
  static void CodePool(Coder& coder, Pool& pool, uint8_t version);
  template <typename Coder, typename AnyClient>
  static void CodeClient(Coder& coder, AnyClient& client, uint8_t version);
  static bool IsSound(const FairSharePool& pool);
  static bool AreSound(const FairSharePool& pool);
};

}  // namespace headgate::algorithm
