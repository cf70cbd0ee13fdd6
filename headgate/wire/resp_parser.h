// What a Redis client sends, as a server reads it: an array of bulk strings, or a line of words (an
// inline command).
//
//   *3\r\n$4\r\nECHO\r\n…        or        ECHO "hello world"\r\n
//
// Incremental and zero-copy: arguments are views into the input. The owner of the input keeps what
// was not consumed and shows it again, longer, from its first byte on; the parser remembers how far
// it got, so that a large command which arrives byte by byte is not scanned again and again.
// Allocates only for a command of more arguments than any before, and for inline commands. Error
// texts are those of Redis; after an error the connection has to close.
//
// Protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

// What one command may need. A length beyond these is an error as soon as it is announced.
struct RespBounds {
  size_t args_max = 8192;             // HG.CHECK with 64 descriptors of 32 entries has some 4,300
  size_t bulk_bytes_max = 512 << 10;  // one argument
  size_t inline_bytes_max = 64 << 10;
  size_t command_bytes_max = 1 << 20;  // a whole command: what a connection may let pile up
  bool unauthenticated =
      false;  // beyond args_max and bulk_bytes_max the error says that a login would help
};

class RespParser {
 public:
  enum class Step : uint8_t {
    kCommand,     // arguments and consumed_bytes are valid until the input moves or Parse is called
    kIncomplete,  // needs more input
    kError,       // error() says what is wrong; nothing more can be parsed
  };

  explicit RespParser(const RespBounds& bounds = {}) : bounds_(bounds) {}

  // For the commands that follow; not while one is half read.
  void set_bounds(const RespBounds& bounds) { bounds_ = bounds; }

  // `input` begins with the first byte that no command has consumed yet.
  Step Parse(std::string_view input);

  // Begins anew: the next input begins a command, whatever came before.
  void Forget() { Begin(); }

  // Of the command that Parse found. A command without arguments (an empty line, `*0`) asks for
  // nothing.
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
  Step ParseArray(std::string_view input);
  Step ParseArgCount(std::string_view input);
  Step ParseBulkLength(std::string_view input);
  Step ParseInline(std::string_view input);
  bool SplitInline(std::string_view line);
  Line FindLine(std::string_view input, std::string_view& line);
  Step Fail(std::string error);

  RespBounds bounds_;
  State state_ = State::kStart;
  const char* base_ = nullptr;  // what the offsets of args_ count from
  size_t position_ = 0;         // of the command, digested
  size_t scanned_ = 0;          // up to here there is no end of the line that begins at position_
  int64_t args_left_ = 0;
  int64_t bulk_bytes_ = -1;  // of the argument that begins at position_; -1: its length comes first
  std::vector<Arg> args_;
  std::string inline_;  // the words of an inline command, unquoted, one behind the other
  std::string error_;
};

}  // namespace headgate::wire
