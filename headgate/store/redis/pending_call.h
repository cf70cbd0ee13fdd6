// A call that is under way: what to send, until when, and who waits for it. The client owns them
// and uses them again, so that a call allocates nothing once it has run for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "headgate/base/clock.h"
#include "headgate/store/breaker.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/redis/script.h"
#include "headgate/wire/resp_reader.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::store::redis {

// Bounds of what a server may answer: a whole value, and what a script says before it.
inline constexpr wire::ReplyBounds kReplyBounds = {.depth_max = 8,
                                                   .values_max = 1 << 16,
                                                   .bulk_bytes_max = kValueBytesMax + 64,
                                                   .line_bytes_max = 16 << 10};

struct PendingCall {
  // What the server replied, for the time of the call that tells it; or why nothing.
  using Outcome = absl::StatusOr<const wire::RespValue*>;
  using Done = std::function<void(const Outcome& outcome)>;

  const Script* script = nullptr;  // null: `body` is a whole command
  uint32_t argument_count = 0;     // of the script, its key not among them
  std::string body;                // the key and the arguments as they go over the wire
  std::string key;                 // where a redirect needs it; empty for commands
  base::BootTime started{0};
  base::BootTime deadline{0};
  Done done;

  // How often it has been sent, and why again.
  uint8_t redirects = 0;
  uint8_t retries = 0;
  uint8_t script_misses = 0;
  bool with_text = false;  // the server does not know the script
  bool own = false;        // the client's, not counted
  bool learns = false;     // not sent while its shard is learning
  bool asking = false;     // a slot that is moving: only this once at this server
  // While it is at a server.
  uint32_t shard = 0;
  uint32_t link = 0;
  Breaker::Pass pass = Breaker::Pass::kRefused;
  uint64_t scripts_sent_before = 0;  // of the connection, when it was sent

  void Encode(std::string& output) const {
    if (script != nullptr) {
      wire::RespWriter writer(output, wire::RespVersion::k2);
      writer.Array(4 + size_t{argument_count});
      output.append(with_text ? script->by_text : script->by_digest);
    }
    output.append(body);
  }
};

// A whole command, as it goes over the wire.
inline void AppendCommand(std::string& output, std::span<const std::string_view> words) {
  wire::RespWriter writer(output, wire::RespVersion::k2);
  writer.Array(words.size());
  for (const std::string_view word : words) writer.Bulk(word);
}

}  // namespace headgate::store::redis
