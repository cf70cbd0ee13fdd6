// Parses the commands of a Redis client: an array of bulk strings, or a line of words (an inline
// command).
//
//   *3\r\n$4\r\nECHO\r\n…        or        ECHO "hello world"\r\n
//
// Incremental and zero-copy: arguments are views into the input. The owner of the input keeps the
// bytes that were not consumed and passes them again, with more bytes behind them. The parser
// remembers its position, so a large command that arrives byte by byte is not scanned again and
// again. Allocates only for inline commands and for a command with more arguments than any before.
// Error texts are those of Redis. After an error the connection must be closed.
//
// Protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

// Bounds on one command. A length beyond them is an error as soon as it is announced.
struct RespBounds {
  size_t args_max = 8192;             // HG.CHECK with 64 descriptors of 32 entries has about 4,300
  size_t bulk_bytes_max = 512 << 10;  // one argument
  size_t inline_bytes_max = 64 << 10;
  size_t command_bytes_max = 1 << 20;  // a whole command, and so the most that a connection buffers
  // If set, the errors about args_max and bulk_bytes_max say that a login would help.
  bool unauthenticated = false;
};

class RespParser {
 public:
  enum class Step : uint8_t {
    kCommand,     // arguments and consumed_bytes are valid until the input moves or Parse is called
    kIncomplete,  // needs more input
    kError,       // error() describes the error; nothing more can be parsed
  };

  explicit RespParser(const RespBounds& bounds = {}) : bounds_(bounds) {}

  // Applies from the next command on. Do not call it in the middle of a command.
  void set_bounds(const RespBounds& bounds) { bounds_ = bounds; }

  // `input` begins with the first byte that no command has consumed yet.
  Step Parse(std::string_view input);

  // Discards any partial command: the next input starts a new command.
  void Forget() { Begin(); }

  // The arguments of the command that Parse found. A command without arguments (an empty line,
  // `*0`) requests nothing.
  size_t size() const { return args_.size(); }
  std::string_view operator[](size_t i) const { return {base_ + args_[i].offset, args_[i].size}; }
  size_t consumed_bytes() const { return position_; }

  // Without the leading "ERR ".
  std::string_view error() const { return error_; }

 private:
  enum class State : uint8_t { kStart, kInline, kArgCount, kArgs, kDone, kFailed };
  enum class Line : uint8_t { kWhole, kPartial, kTooLong };
  struct Arg {
    uint32_t offset;
    uint32_t size;
  };

  void Begin();
  bool ParseShortArray(std::string_view input);
  Step ParseArray(std::string_view input);
  Step ParseArgCount(std::string_view input);
  Step ParseBulkLength(std::string_view input);
  Step ParseInline(std::string_view input);
  bool SplitInline(std::string_view line);
  Line FindLine(std::string_view input, std::string_view& line);
  Step Fail(std::string error);

  RespBounds bounds_;
  State state_ = State::kStart;
  const char* base_ = nullptr;  // the offsets of args_ are relative to this
  size_t position_ = 0;         // bytes of the command that are parsed
  size_t scanned_ = 0;          // no line end was found between position_ and here
  int64_t args_left_ = 0;
  // Size of the argument that begins at position_; -1: its length line is next.
  int64_t bulk_bytes_ = -1;
  std::vector<Arg> args_;
  std::string inline_;  // the unquoted words of an inline command, concatenated
  std::string error_;
};

}  // namespace headgate::wire
