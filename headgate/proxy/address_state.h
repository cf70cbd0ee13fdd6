// The state of one address of the upstream on one loop, for people and metrics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headgate::proxy {

// Why an address was set aside.
enum class AsideBecause : uint8_t {
  kNot,            // it was not
  kNoConnection,   // no connection could be made
  kBroken,         // it broke off exchanges, or violated the protocol
  kTooSlow,        // it did not answer in time
  kChecksFailed,   // active checks failed
  kNeverAccepted,  // it has never accepted a connection, while another of its name has
};

struct AddressState {
  size_t id = 0;
  uint64_t in_progress = 0;  // requests
  // While it is set aside, it gets no requests if another address can take them. Now and then a
  // request tries it; one good answer ends this.
  AsideBecause aside = AsideBecause::kNot;
  bool operator==(const AddressState&) const = default;
};

}  // namespace headgate::proxy
