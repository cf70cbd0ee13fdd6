// Values with versions in Redis or Valkey (store/cas/versioned_store.h), for state that is not a
// bucket: one object per event loop, over its client.
//
//   Get   the value and the server's time
//   Put   SET, if the key still has the expected version
//
// A value is stored behind its version (8 bytes), which the writer chooses: a random one for a new
// value, later the next number. A key of another type, or with fewer bytes, has version 0.
//
// A promoted replica may lack the last writes, so an old value can come back, and readers must
// tolerate that.
#pragma once

#include <optional>
#include <string_view>

#include "headgate/base/random.h"
#include "headgate/store/cas/versioned_store.h"
#include "headgate/store/redis/client.h"

namespace headgate::store::redis {

class Values final : public cas::VersionedStore {
 public:
  // The client must outlive it. `seed` differs between processes and event loops.
  Values(Client& client, uint64_t seed) : client_(client), random_(seed) {}

  void Get(std::string_view name, base::BootTime deadline, GetDone done) override;
  void Put(const cas::PutRequest& request, PutDone done) override;
  std::optional<base::Instant> TimeAt(base::BootTime now) const override;

 private:
  // The server's time, and when it was asked for.
  struct Measured {
    base::Instant server;
    base::BootTime asked_at;
  };

  base::Duration Left(base::BootTime deadline) const;
  absl::StatusOr<std::optional<cas::Versioned>> Read(const PendingCall::Outcome& reply,
                                                     base::BootTime asked_at);

  Client& client_;
  base::Random random_;
  std::optional<Measured> measured_;
};

}  // namespace headgate::store::redis
