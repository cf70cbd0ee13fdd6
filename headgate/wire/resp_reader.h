// What a Redis server answers, as a client reads it: RESP2 and RESP3 values.
//
// Incremental: a reply may arrive in any pieces. What was digested need not be shown again, so that
// a long array is not read twice; the owner of the input keeps the rest. Bounded in depth, in
// values and in bytes of one line or bulk, since a server is not trusted either. Streamed types
// (`$?`, `*?`) are refused: no server sends them unasked.
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
    kDouble,     // text, as sent
    kBigNumber,  // text, as sent
    kVerbatim,   // text, after its kind (three letters and a colon)
    kArray,      // items
    kSet,        // items
    kPush,       // items; not the answer to any command
    kMap,        // items: name, value, name, value …
  };

  Kind kind = Kind::kNull;
  int64_t integer = 0;
  std::string text;
  std::vector<RespValue> items;

  bool is_error() const { return kind == Kind::kError; }
  bool operator==(const RespValue&) const = default;

  // For people: `[0, "a", nil]`, `{"name": 1}`, `-ERR text`.
  std::string ToString() const;
};

struct ReplyBounds {
  size_t depth_max = 16;
  size_t values_max = 1 << 20;  // of one reply, all levels together
  size_t bulk_bytes_max = 16 << 20;
  size_t line_bytes_max = 64 << 10;
};

class RespReader {
 public:
  enum class Step : uint8_t {
    kValue,       // value() is a whole reply
    kIncomplete,  // needs more input
    kError,       // error() says what is wrong; the connection is of no more use
  };

  explicit RespReader(const ReplyBounds& bounds = {}) : bounds_(bounds) {}

  // `input` begins with the first byte that was not consumed yet; `consumed` is how many of its
  // bytes are now, which may be more than none without a whole value.
  Step Read(std::string_view input, size_t& consumed);

  // Of the last kValue; may be moved from.
  RespValue& value() { return value_; }
  std::string_view error() const { return error_; }

 private:
  struct Open {  // an array, map, set, push or attribute that still lacks values
    RespValue value;
    int64_t left;
    bool attribute;  // belongs to the value that follows, and is dropped
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
  size_t values_ = 0;        // of this reply, so far
  size_t scanned_ = 0;       // up to here the input holds no line end
  int64_t bulk_bytes_ = -1;  // of the bulk that comes next; -1: a line does
  RespValue::Kind bulk_kind_ = RespValue::Kind::kBulk;
  RespValue value_;
  std::string error_;
};

}  // namespace headgate::wire
