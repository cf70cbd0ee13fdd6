// The settings of the pool that a sidecar shares among its clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_options.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/capacity/capacity_controller.h"

namespace headgate::share {

enum class Mode : uint8_t {
  kEnforce,
  kPassthrough,  // decides, counts and publishes, and lets everything through
};

// The treatment of a request without a client id.
enum class WithoutId : uint8_t {
  kRefuse,
  kShareOne,  // all of them are one client, named `anonymous`
};

struct ClientWeight {
  std::string client;
  uint32_t weight = 1;
};

struct ShareOptions {
  // The pool: its capacity, its cycle and so on. Leave its capacity 0 if it is found.
  algorithm::FairShareOptions pool{};
  // Finds the capacity and limits the requests in flight (`capacity: auto`); else the capacity is
  // that of the pool.
  std::optional<capacity::CapacityOptions> find_capacity{};
  // For clients by name; all others have weight 1.
  std::vector<ClientWeight> weights{};
  WithoutId without_id = WithoutId::kRefuse;
  // The name of the client that requests without an id share. A client with this id shares with
  // them.
  std::string anonymous = "anonymous";
  // Longer ids are replaced by their hash, so that a client takes a bounded amount of memory. Raise
  // it if long ids must be readable in metrics.
  size_t client_id_bytes_max = 128;
  // The key of this hash. Draw it at random. Instances that compare clients need the same one.
  base::HashSecret secret{};
  Mode mode = Mode::kEnforce;  // at first; SharePool::SetMode changes it

  // InvalidArgument with a message for the person who configured these options.
  absl::Status Validate() const;
};

}  // namespace headgate::share
