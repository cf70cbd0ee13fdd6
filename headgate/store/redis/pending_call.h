// A call in progress: the bytes to send, the deadline, and the callback for the answer. The client
// owns and reuses these objects, so that a call allocates nothing after a while.
#pragma once

#include <algorithm>
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

// Bounds for an answer of a server: a whole value, and the words of a script before it.
inline constexpr wire::ReplyBounds kReplyBounds = {.depth_max = 8,
                                                   .values_max = 1 << 16,
                                                   .bulk_bytes_max = kValueBytesMax + 64,
                                                   .line_bytes_max = 16 << 10};

struct PendingCall {
  // The server's reply, valid during the call of `done`; or the reason why there is none.
  using Outcome = absl::StatusOr<const wire::RespValue*>;
  using Done = std::function<void(const Outcome& outcome)>;

  const Script* script = nullptr;  // null: `body` is a whole command
  uint32_t argument_count = 0;     // of the script, without its key
  std::string body;                // the key and the arguments in wire format
  std::string key;                 // for redirects; empty for commands
  base::BootTime started{0};
  base::BootTime deadline{0};
  base::Duration timeout{0};  // how long the server may be silent
  Done done;

  // How many times the call was sent again, by reason.
  uint8_t redirects = 0;
  uint8_t retries = 0;
  uint8_t script_misses = 0;
  bool with_text = false;  // sent with the text of the script, because the server does not know it
  bool own = false;        // made by the client itself; not counted
  bool learns = false;     // not sent, but fails, while its shard is learning (ConnectionEvent)
  bool asking = false;     // sent behind ASKING, because the slot of its key is moving
  // Valid while the call is at a server.
  uint32_t shard = 0;
  uint32_t link = 0;
  Breaker::Pass pass = Breaker::Pass::kRefused;
  uint64_t scripts_sent_before = 0;  // by the connection, when the call was sent

  // How long it waits until its server is known.
  base::BootTime UnroutedUntil() const { return std::min(started + timeout, deadline); }

  void Encode(std::string& output) const {
    if (script != nullptr) {
      wire::RespWriter writer(output, wire::RespVersion::k2);
      writer.Array(4 + size_t{argument_count});
      output.append(with_text ? script->by_text : script->by_digest);
    }
    output.append(body);
  }
};

// Appends a whole command in wire format.
inline void AppendCommand(std::string& output, std::span<const std::string_view> words) {
  wire::RespWriter writer(output, wire::RespVersion::k2);
  writer.Array(words.size());
  for (const std::string_view word : words) writer.Bulk(word);
}

}  // namespace headgate::store::redis
