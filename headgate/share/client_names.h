// The names and weights of clients in a pool, made from the ids in requests.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "headgate/share/share_options.h"

namespace headgate::share {

class ClientNames {
 public:
  // Enough for any name that replaces a long id.
  using Buffer = std::array<char, 48>;

  // `options` must outlive this object.
  explicit ClientNames(const ShareOptions& options);

  // The name of the client with this id; empty if it has none. Valid as long as the arguments.
  std::string_view NameOf(std::string_view client_id, Buffer& buffer) const;
  uint32_t WeightOf(std::string_view name) const;

 private:
  const ShareOptions& options_;
  absl::flat_hash_map<std::string, uint32_t> weights_;  // by name
};

}  // namespace headgate::share
