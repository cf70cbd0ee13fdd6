// One round of requests about one bucket: from the bytes of the bucket and the requests to the
// answers and the new bytes. Pure: the caller reads and writes the bytes (key_exchange.h).
//
//   BucketRound round(bytes, now);
//   for each request, in order: answer = round.Answer(request)
//   if round.changes() says so: write round.bytes()
//
// A round does the same as a script of the Redis store, with the same arithmetic: it carries the
// bucket over to another limit, sets back a time that is far ahead, expires and grants leases, and
// replaces a bucket that it cannot read. tests/cas holds it equal to the scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/shared_store.h"

namespace headgate::store::cas {

struct RoundOptions {
  // The longest life of any lease.
  base::Duration lease_ttl_most = kTinyLeaseTtl;
  // A bucket further ahead of `now` than this is brought back to `now`. Unset: the time that the
  // bucket takes to fill, at least a second.
  std::optional<base::Duration> ahead_most{};
};

enum class Changes : uint8_t {
  kNothing,
  // Only the time of the last use changed, because all requests were denied. This need not be
  // written: the time only protects against a clock that goes back.
  kTime,
  kState,  // has to be written before the answers count
};

class BucketRound {
 public:
  // `bucket`: the bytes of the bucket, as bucket_codec.h; empty if it is fresh. nullopt: there are
  // bytes, but they are unreadable.
  BucketRound(std::optional<std::string_view> bucket, base::Instant now,
              const RoundOptions& options = {});

  // The answer to the next request. Do not call it for requests that AnswerWithoutStore answers.
  SharedAnswer Answer(const SharedRequest& request);

  // The largest change of all requests so far.
  Changes changes() const { return changes_; }
  // The bucket after all requests so far; empty if it is fresh.
  std::string bytes() const;
  // When the bucket will be fresh, its leases included.
  base::Instant expires_at() const { return bucket_ ? expires_at_ : now_; }

 private:
  SharedAnswer Reset(const SharedRequest& request);
  SharedAnswer Peek(const SharedRequest& request, base::Instant clock) const;
  Changes Do(const SharedRequest& request, const algorithm::Limit& limit, base::Instant now,
             SharedAnswer& answer);
  void NoteChange(Changes changes);
  void EndRequest(base::Instant now);

  const base::Instant now_;
  const RoundOptions options_;
  std::optional<StoredBucket> bucket_;
  bool unreadable_ = false;
  Changes changes_ = Changes::kNothing;
  base::Instant expires_at_{0};
};

}  // namespace headgate::store::cas
