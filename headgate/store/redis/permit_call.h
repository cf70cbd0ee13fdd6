// A question about the permits of a key, as the call of a script and its reply. The script is
// scripts/permits.lua, the twin of permit::PermitSet.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/store/redis/script.h"
#include "headgate/store/shared_store.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

class PermitCall {
 public:
  explicit PermitCall(const SharedPermits& request);

  static const Script& script();
  std::string_view key() const { return key_; }
  // The arguments of the script; the views are valid as long as this object.
  std::vector<std::string_view> arguments() const { return {words_.begin(), words_.end()}; }

  // Unavailable if the server refused the call; Internal if the reply is unknown.
  static absl::StatusOr<permit::Answer> Read(const wire::RespValue& reply);

 private:
  std::string key_;
  std::array<std::string, 4> words_;
};

}  // namespace headgate::store::redis
