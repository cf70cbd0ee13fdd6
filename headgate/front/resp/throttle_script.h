// The Lua scripts that consist of one call, in which some clients wrap CL.THROTTLE because their
// library sends no unknown commands:
//
//   return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])
//
// Headgate runs no Lua. It parses such a script once, and then treats each EVAL of the script as
// the command that the script calls. docs/reference/redis-protocol.md has the grammar.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::front::resp {

// The words of one command, as views.
class CommandWords {
 public:
  // CL.THROTTLE with all its arguments, and one too many, which is an error.
  static constexpr size_t kMax = 8;

  size_t size() const { return size_; }
  std::string_view operator[](size_t i) const { return words_[i]; }
  // False: there is no room.
  bool Add(std::string_view word) {
    if (size_ == kMax) return false;
    words_[size_++] = word;
    return true;
  }

 private:
  std::array<std::string_view, kMax> words_;
  size_t size_ = 0;
};

// The keys and arguments of an EVAL: `keys` of the words are keys, the others are arguments.
struct ScriptArguments {
  std::vector<std::string_view> words;
  size_t keys = 0;
};

class ThrottleScript {
 public:
  // A longer text is refused.
  static constexpr size_t kTextBytesMax = 1024;

  // InvalidArgument if the text is not a script of one call.
  static absl::StatusOr<ThrottleScript> Parse(std::string_view text);

  // The command that the script calls with these arguments. InvalidArgument if one is missing.
  absl::StatusOr<CommandWords> Expand(const ScriptArguments& arguments) const;

 private:
  enum class Kind : uint8_t { kText, kKey, kArgument, kAllKeys, kAllArguments };
  struct Word {
    Kind kind = Kind::kText;
    size_t index = 0;  // of a key or an argument, from 1
    std::string text{};
  };
  class Reader;

  std::vector<Word> words_;
};

}  // namespace headgate::front::resp
