// One request about a bucket in Redis, from the call of its script to the answer. Does no I/O: the
// client sends the command of AppendCommand to the node that has the key, and passes the reply to
// Read.
//
//   BucketCall call(request, context);
//   do send(call) until answer = call.Read(reply)
//
// The script decides only whether a request passes, stores the new state, and answers with the
// state that it found. From that state the kernel computes the decision here, which must agree with
// the script. A bucket that was made under another limit is carried over here, by the kernel too:
// the script answers with the state that it found, and a second call replaces the state if it has
// not changed since. So most requests take one call, and the first one after a change of the limit
// takes two. A request that keeps the bucket's limit is repeated under that limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/limit_history.h"
#include "headgate/store/redis/script.h"
#include "headgate/store/shared_store.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

// A longer name is hashed.
inline constexpr size_t kNameBytesMax = 512;

// `hg:{…}` with 32 hex digits of the name's SHA-256: the same on all machines.
std::string HashedName(std::string_view name);
// Internal: the answer is not one that this script can send.
absl::Status Unreadable(std::string_view script, const wire::RespValue& reply);

// The data of a call besides the request.
struct CallContext {
  // The longest life of any lease.
  base::Duration lease_ttl_most = kTinyLeaseTtl;
  // Instead of the server's clock, for tests and simulations.
  std::optional<base::Instant> now{};
  // The least time for which a key is kept, for tests whose `now` does not follow the server's
  // clock.
  base::Duration kept_least{0};
  // A bucket further ahead of `now` than this is brought back to `now`. Unset: the time that the
  // bucket takes to fill, at least a second.
  std::optional<base::Duration> ahead_most{};
};

class BucketCall {
 public:
  // As in answer_without_store.h.
  static std::optional<SharedAnswer> AnswerWithoutStore(const SharedRequest& request);

  // For a request that needs the store. Only the request's history must stay valid afterwards.
  // `memory` is the memory of a finished call, to be reused.
  BucketCall(const SharedRequest& request, const CallContext& context, std::string memory = {});
  std::string TakeMemory() && { return std::move(bytes_); }

  const Script& script() const { return *script_; }
  // The only key that is touched; it determines the shard.
  std::string_view key() const { return Part(0); }
  // Whether the call asks for a lease, or decides about a bucket that can have leases. Such a call
  // must wait while the shard is learning.
  bool learns() const { return learns_; }
  // KEYS[1], then ARGV.
  size_t part_count() const { return part_count_; }
  std::string_view Part(size_t i) const;

  enum class Form : uint8_t {
    kDigest,  // EVALSHA
    kText,    // EVAL: teaches the script to the server
  };
  void AppendCommand(Form form, std::string& out) const;

  // Returns the answer, or nullopt if a second call has to be sent; this object is then that call.
  // The client handles errors of the server that do not come from our script (MOVED, NOSCRIPT,
  // LOADING …); here they become Unavailable. DataLoss if the value under the key is damaged or
  // foreign; the value is not changed then.
  std::optional<SharedAnswer> Read(const wire::RespValue& reply);

 private:
  static constexpr size_t kPartsMax = 6;
  // How often the call starts over because another instance has carried the bucket over to its own
  // limit meanwhile.
  static constexpr int kCarriesMax = 8;

  void EndPart() { part_ends_[part_count_++] = static_cast<uint32_t>(bytes_.size()); }
  void AppendLimit();
  void AppendNumbers();
  void AppendAsk(const LeaseAsk& ask);
  std::optional<SharedAnswer> ReadDecided(std::string_view reply);
  std::optional<SharedAnswer> CarryOver(std::string_view reply);
  SharedAnswer Decide(algorithm::BucketState state, HitList hits, base::Instant now, bool allowed);
  void ReadGrant(std::string_view tail, algorithm::BucketState state, base::Instant now,
                 bool allowed, SharedAnswer& answer);
  static SharedAnswer Damaged();
  absl::Status Contradicted(bool allowed) const;

  algorithm::Limit limit_;
  CallContext context_;
  const Script* script_ = nullptr;
  algorithm::Cost cost_;
  bool asks_lease_ = false;
  bool learns_ = false;
  bool keeps_limit_ = false;
  Operation operation_;
  base::Instant taken_at_;
  LimitHistory history_;
  SharedEvents events_;  // of the calls so far
  int carries_ = 0;
  std::array<uint32_t, kPartsMax> part_ends_{};
  uint8_t part_count_ = 0;
  std::string bytes_;  // all parts, concatenated
};

}  // namespace headgate::store::redis
