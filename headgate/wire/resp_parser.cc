#include "headgate/wire/resp_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/wire/resp_number.h"

namespace headgate::wire {
namespace {

// A line that announces a length is at most as long as Redis allows.
constexpr size_t kLengthLineMax = 64 << 10;
// Memory kept from one command for the next.
constexpr size_t kArgsKept = 256;
constexpr size_t kInlineKept = 4 << 10;
// An argument whose length has at most two digits.
constexpr size_t kShortBytesMax = 99;

// Reads a length of one or two digits and its line end. Returns the first byte behind it, or null
// if the input is anything else.
inline const char* ShortLength(const char* at, const char* end, char kind, uint32_t& length) {
  if (end - at < 5 || at[0] != kind || !base::IsDigit(at[1])) return nullptr;
  length = static_cast<uint32_t>(at[1] - '0');
  if (at[2] == '\r') return at + 4;
  if (!base::IsDigit(at[2]) || at[3] != '\r' || length == 0) return nullptr;
  length = length * 10 + static_cast<uint32_t>(at[2] - '0');
  return at + 5;
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Appends the character that the escape at `at` (a backslash within double quotes) stands for.
// Returns the length of the escape.
size_t Unescape(std::string_view at, std::string& out) {
  if (at.size() >= 4 && at[1] == 'x' && base::HexValue(at[2]) >= 0 && base::HexValue(at[3]) >= 0) {
    out.push_back(static_cast<char>(base::HexValue(at[2]) * 16 + base::HexValue(at[3])));
    return 4;
  }
  if (at.size() < 2) {
    out.push_back('\\');
    return 1;
  }
  switch (at[1]) {
    case 'n':
      out.push_back('\n');
      break;
    case 'r':
      out.push_back('\r');
      break;
    case 't':
      out.push_back('\t');
      break;
    case 'b':
      out.push_back('\b');
      break;
    case 'a':
      out.push_back('\a');
      break;
    default:
      out.push_back(at[1]);
  }
  return 2;
}

// Appends the quoted text at `at`, which begins with its quote. Returns its length, or 0 if the
// closing quote is missing or is directly followed by another character.
size_t Unquote(std::string_view at, std::string& out) {
  const char quote = at[0];
  size_t i = 1;
  while (i < at.size()) {
    if (at[i] == quote) return i + 1 == at.size() || IsSpace(at[i + 1]) ? i + 1 : 0;
    if (quote == '"' && at[i] == '\\') {
      i += Unescape(at.substr(i), out);
    } else if (quote == '\'' && at.substr(i).starts_with("\\'")) {
      out.push_back('\'');
      i += 2;
    } else {
      out.push_back(at[i++]);
    }
  }
  return 0;
}

}  // namespace

RespParser::Step RespParser::Parse(std::string_view input) {
  if (state_ == State::kFailed) return Step::kError;
  if (state_ == State::kDone || state_ == State::kStart) {
    if (ParseShortArray(input)) return Step::kCommand;
    Begin();
    if (input.empty()) return Step::kIncomplete;
    state_ = input[0] == '*' ? State::kArgCount : State::kInline;
  }
  return state_ == State::kInline ? ParseInline(input) : ParseArray(input);
}

// Parses a whole command of short arguments, as most commands are. Returns false if it is not
// whole, has anything else, or comes near a bound; Begin must follow then.
bool RespParser::ParseShortArray(std::string_view input) {
  const char* const begin = input.data();
  const char* const end = begin + std::min(input.size(), bounds_.command_bytes_max);
  uint32_t count = 0;
  const char* at = ShortLength(begin, end, '*', count);
  if (at == nullptr || count > bounds_.args_max || kShortBytesMax > bounds_.bulk_bytes_max ||
      args_.capacity() > kArgsKept)
    return false;
  args_.resize(count);
  for (Arg& arg : args_) {
    uint32_t size = 0;
    at = ShortLength(at, end, '$', size);
    if (at == nullptr || end - at < size + 2) return false;
    arg = {static_cast<uint32_t>(at - begin), size};
    at += size + 2;
  }
  base_ = begin;
  position_ = static_cast<size_t>(at - begin);
  state_ = State::kDone;
  return true;
}

void RespParser::Begin() {
  if (args_.capacity() > kArgsKept) [[unlikely]]
    std::vector<Arg>().swap(args_);
  args_.clear();
  position_ = 0;
  scanned_ = 0;
  bulk_bytes_ = -1;
  state_ = State::kStart;
}

RespParser::Step RespParser::ParseArray(std::string_view input) {
  if (state_ == State::kArgCount) {
    if (const Step step = ParseArgCount(input); step != Step::kCommand) return step;
    if (args_left_ > static_cast<int64_t>(bounds_.args_max)) {
      return Fail(bounds_.unauthenticated ? "Protocol error: unauthenticated multibulk length"
                                          : "Protocol error: invalid multibulk length");
    }
    state_ = State::kArgs;
  }
  while (args_left_ > 0) {
    if (bulk_bytes_ < 0) {
      if (const Step step = ParseBulkLength(input); step != Step::kCommand) return step;
      if (bulk_bytes_ > static_cast<int64_t>(bounds_.bulk_bytes_max)) {
        return Fail(bounds_.unauthenticated ? "Protocol error: unauthenticated bulk length"
                                            : "Protocol error: invalid bulk length");
      }
      if (position_ + static_cast<size_t>(bulk_bytes_) > bounds_.command_bytes_max) {
        return Fail("Protocol error: too big request");
      }
    }
    const auto bytes = static_cast<size_t>(bulk_bytes_);
    // Like Redis, this does not check the two bytes after the argument.
    if (input.size() - position_ < bytes + 2) return Step::kIncomplete;
    args_.push_back({static_cast<uint32_t>(position_), static_cast<uint32_t>(bytes)});
    position_ += bytes + 2;
    bulk_bytes_ = -1;
    --args_left_;
  }
  base_ = input.data();
  state_ = State::kDone;
  return Step::kCommand;
}

// ParseArgCount and ParseBulkLength return kCommand when they have read their line.
RespParser::Step RespParser::ParseArgCount(std::string_view input) {
  std::string_view line;
  switch (FindLine(input, line)) {
    case Line::kPartial:
      return Step::kIncomplete;
    case Line::kTooLong:
      return Fail("Protocol error: too big mbulk count string");
    case Line::kWhole:
      break;
  }
  const auto count = RespNumber(line.substr(1));
  if (!count || *count > std::numeric_limits<int32_t>::max())
    return Fail("Protocol error: invalid multibulk length");
  args_left_ = *count;
  position_ += line.size() + 2;
  return Step::kCommand;
}

RespParser::Step RespParser::ParseBulkLength(std::string_view input) {
  std::string_view line;
  switch (FindLine(input, line)) {
    case Line::kPartial:
      return Step::kIncomplete;
    case Line::kTooLong:
      return Fail("Protocol error: too big bulk count string");
    case Line::kWhole:
      break;
  }
  // For an empty line, the error shows its line end.
  const char kind = line.empty() ? '\r' : line[0];
  if (kind != '$') return Fail(fmt::format("Protocol error: expected '$', got '{}'", kind));
  const auto bytes = RespNumber(line.substr(1));
  if (!bytes || *bytes < 0) return Fail("Protocol error: invalid bulk length");
  bulk_bytes_ = *bytes;
  position_ += line.size() + 2;
  return Step::kCommand;
}

// Finds the line that begins at position_, without its end. Like Redis, this accepts `\r` followed
// by any byte as a line end.
RespParser::Line RespParser::FindLine(std::string_view input, std::string_view& line) {
  const size_t from = std::max(scanned_, position_);
  const size_t to = std::min(input.size(), position_ + kLengthLineMax + 1);
  const size_t end = input.substr(0, to).find('\r', from);
  if (end == std::string_view::npos) {
    scanned_ = to;
    return to - position_ > kLengthLineMax ? Line::kTooLong : Line::kPartial;
  }
  scanned_ = end;
  if (end + 1 == input.size()) return Line::kPartial;
  line = input.substr(position_, end - position_);
  return Line::kWhole;
}

RespParser::Step RespParser::ParseInline(std::string_view input) {
  const size_t to = std::min(input.size(), bounds_.inline_bytes_max + 1);
  const size_t end = input.substr(0, to).find('\n', scanned_);
  if (end == std::string_view::npos) {
    scanned_ = to;
    return to > bounds_.inline_bytes_max ? Fail("Protocol error: too big inline request")
                                         : Step::kIncomplete;
  }
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (inline_.capacity() > kInlineKept) std::string().swap(inline_);
  inline_.clear();
  if (!SplitInline(line)) return Fail("Protocol error: unbalanced quotes in request");
  if (args_.size() > bounds_.args_max) return Fail("Protocol error: too big inline request");
  base_ = inline_.data();
  position_ = end + 1;
  state_ = State::kDone;
  return Step::kCommand;
}

// Words are separated by white space and may contain quoted parts, as on redis-cli's command line.
bool RespParser::SplitInline(std::string_view line) {
  size_t i = 0;
  while (true) {
    while (i < line.size() && IsSpace(line[i])) ++i;
    if (i == line.size()) return true;
    const size_t begin = inline_.size();
    while (i < line.size()) {
      const char c = line[i];
      if (c == ' ' || c == '\t' || c == '\r') break;
      if (c == '"' || c == '\'') {
        const size_t quoted = Unquote(line.substr(i), inline_);
        if (quoted == 0) return false;
        i += quoted;
        break;
      }
      inline_.push_back(c);
      ++i;
    }
    args_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(inline_.size() - begin)});
  }
}

RespParser::Step RespParser::Fail(std::string error) {
  error_ = std::move(error);
  state_ = State::kFailed;
  return Step::kError;
}

}  // namespace headgate::wire
