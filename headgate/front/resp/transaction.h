// MULTI … EXEC: commands that a client sends to be executed one after the other, with one reply.
//
// As in Redis, each command is checked and answered QUEUED when it arrives, and EXEC executes all
// of them; a command that was refused on arrival makes EXEC execute none. Unlike in Redis, commands
// of other connections may be executed in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::front::resp {

class Transaction {
 public:
  // Bounds of a connection's queued commands.
  static constexpr size_t kCommandsMax = 128;
  static constexpr size_t kBytesMax = 16 << 10;
  // Once the replies have more bytes than this, no further command is executed.
  static constexpr size_t kReplyBytesMax = size_t{512} << 10;

  enum class State : uint8_t {
    kNone,
    kQueuing,    // between MULTI and EXEC
    kRefused,    // the same, but a command was refused, so that EXEC executes none
    kExecuting,  // EXEC was read; its commands are executed, perhaps in several calls
  };

  State state() const { return state_; }
  bool queuing() const { return state_ == State::kQueuing || state_ == State::kRefused; }
  bool executing() const { return state_ == State::kExecuting; }

  void Begin() { state_ = State::kQueuing; }
  void Refuse() {
    state_ = State::kRefused;
    Release(bytes_);
  }
  void End() {
    Release(bytes_);
    Release(replies);
    state_ = State::kNone;
    count_ = executed_ = 0;
  }

  // Queues the bytes of one command. False: there are too many.
  bool Add(std::string_view command) {
    if (count_ == kCommandsMax || bytes_.size() + command.size() > kBytesMax) return false;
    bytes_.append(command);
    ++count_;
    return true;
  }

  // ---- While it is executed

  void BeginExecution() { state_ = State::kExecuting; }
  // The commands that are left.
  std::string_view rest() const { return std::string_view(bytes_).substr(executed_); }
  void Next(size_t command_bytes) { executed_ += command_bytes; }
  size_t count() const { return count_; }
  bool replies_full() const { return replies.size() > kReplyBytesMax; }
  // The memory that it holds.
  size_t held_bytes() const { return bytes_.capacity() + replies.capacity(); }

  std::string replies;  // of the commands that were executed

 private:
  // A buffer up to this size is kept for the next transaction.
  static constexpr size_t kCapacityKept = 1 << 10;
  static void Release(std::string& buffer) {
    buffer.clear();
    if (buffer.capacity() > kCapacityKept) std::string().swap(buffer);
  }

  State state_ = State::kNone;
  std::string bytes_;
  size_t count_ = 0;
  size_t executed_ = 0;
};

}  // namespace headgate::front::resp
