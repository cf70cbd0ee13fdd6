// Commands whose reply comes later, because the shared store or another thread has to answer first.
//
// A command is read once. If it has to wait, a LateReply keeps what it needs, and the bytes of the
// command are gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headgate/base/time.h"
#include "headgate/limiter/permit_hold.h"

namespace headgate::front::resp {

class ReplyQueue;

enum class Answered : uint8_t {
  kWell,
  kWithError,
  kLater,  // nothing was written
};

// Decides which commands of a pipeline may be sent to the store together (ReplyQueue::Admits):
// mostly commands of the same kind.
enum class CommandKind : uint8_t {
  kAlone,
  kCount,    // INCREX
  kCheck,    // HG.CHECK and HG.PEEK
  kChange,   // HG.REFUND and HG.RESET: checks may follow it
  kAcquire,  // HG.ACQUIRE
  kRelease,  // HG.RELEASE
};

// The permit of a reply. If the connection ends before the reply is written, the hold gives back a
// permit that was granted, or that the store grants later.
struct Acquiring {
  std::string id;
  limiter::PermitHold hold;
};

class LateReply {
 public:
  explicit LateReply(CommandKind kind) : kind_(kind) {}
  virtual ~LateReply() = default;
  LateReply(const LateReply&) = delete;
  LateReply& operator=(const LateReply&) = delete;

  CommandKind kind() const { return kind_; }
  // Appends the reply if it is known. Otherwise returns kLater; Wake follows.
  virtual Answered Write(std::string& output, base::Instant now) = 0;
  // The permit of the reply; null if it has none.
  virtual std::unique_ptr<Acquiring> TakePermit() { return nullptr; }
  virtual bool acquires() const { return false; }
  // The memory that grows with the command.
  virtual size_t kept_bytes() const { return 0; }

 protected:
  // Tells the session that Write can append the reply, or continue the command.
  void Wake();

 private:
  friend class ReplyQueue;

  const CommandKind kind_;
  ReplyQueue* queue_ = nullptr;
  bool waits_ = false;
};

}  // namespace headgate::front::resp
