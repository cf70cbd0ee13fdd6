// Reads the replies of a Redis server as a client: RESP2 and RESP3 values.
//
// Incremental: a reply may arrive in any pieces. Consumed input need not be passed again, so a long
// array is not read twice; the owner of the input keeps the rest. Depth, number of values, and
// bytes per line or bulk are bounded, because the server is not trusted either. Streamed types
// (`$?`, `*?`) are refused: no server sends them unless asked.
//
// Protocol: https://redis.io/docs/latest/develop/reference/protocol-spec/
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

struct RespValue {
  enum class Kind : uint8_t {
    kNull,
    kSimple,     // text
    kError,      // text, its code is the first word
    kInteger,    // integer
    kBulk,       // text, binary-safe
    kBoolean,    // integer, 0 or 1
    kDouble,     // text, as received
    kBigNumber,  // text, as received
    kVerbatim,   // text, without the prefix for its kind (three letters and a colon)
    kArray,      // items
    kSet,        // items
    kPush,       // items; not a reply to a command
    kMap,        // items: name, value, name, value …
  };

  Kind kind = Kind::kNull;
  int64_t integer = 0;
  std::string text;
  std::vector<RespValue> items;

  bool is_error() const { return kind == Kind::kError; }
  bool operator==(const RespValue&) const = default;

  // Human-readable: `[0, "a", nil]`, `{"name": 1}`, `-ERR text`.
  std::string ToString() const;
};

struct ReplyBounds {
  size_t depth_max = 16;
  size_t values_max = 1 << 20;  // in one reply, over all levels
  size_t bulk_bytes_max = 16 << 20;
  size_t line_bytes_max = 64 << 10;
};

class RespReader {
 public:
  enum class Step : uint8_t {
    kValue,       // value() is a whole reply
    kIncomplete,  // needs more input
    kError,       // error() describes the error; the connection must be closed
  };

  explicit RespReader(const ReplyBounds& bounds = {}) : bounds_(bounds) {}

  // `input` begins with the first byte that has not been consumed yet. Sets `consumed` to the
  // number of bytes consumed by this call, which can be more than 0 even if no value is complete.
  Step Read(std::string_view input, size_t& consumed);

  // The value of the last kValue; may be moved from.
  RespValue& value() { return value_; }
  std::string_view error() const { return error_; }

 private:
  struct Open {  // an array, map, set, push or attribute whose values have not all arrived
    RespValue value;
    int64_t left;
    bool attribute;  // describes the next value, and is dropped
  };

  enum class Progress : uint8_t { kGoOn, kWhole, kStarved, kFailed };

  Progress ReadOne(std::string_view input, size_t& consumed);
  Progress ReadHeader(std::string_view line);
  Progress ReadBulk(std::string_view input, size_t& consumed);
  Progress OpenItems(char kind, std::string_view count);
  Progress ReadScalar(char kind, std::string_view rest);
  Progress Close(RespValue value);
  Progress Fail(std::string error);

  ReplyBounds bounds_;
  std::vector<Open> open_;
  size_t values_ = 0;        // in this reply, so far
  size_t scanned_ = 0;       // no line end was found in the input before this position
  int64_t bulk_bytes_ = -1;  // size of the bulk that comes next; -1: a line comes next
  RespValue::Kind bulk_kind_ = RespValue::Kind::kBulk;
  RespValue value_;
  std::string error_;
};

}  // namespace headgate::wire
