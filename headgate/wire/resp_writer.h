// Appends RESP values to a string: a server's replies, and (arrays of bulks) a client's commands.
//
// Types that RESP2 lacks are written as RESP2 servers write them: a map as a flat array of names
// and values, a boolean as 0 or 1, null as the nil bulk, a double and a verbatim text as a bulk.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/digits.h"

namespace headgate::wire {

enum class RespVersion : uint8_t { k2 = 2, k3 = 3 };

// The most bytes that WriteRespNumber writes: kind, sign, 19 digits, line end.
inline constexpr size_t kRespNumberBytesMax = 23;

// Writes `kind`, the number and a line end at `at`; returns the end of the written text. `at` must
// have room for kRespNumberBytesMax bytes.
inline char* WriteRespNumber(char* at, char kind, int64_t number) {
  *at++ = kind;
  if (number >= 0 && number <= 9) {
    *at++ = static_cast<char>('0' + number);
  } else if (number >= 0 && number <= int64_t{base::kShortNumberMax}) {
    at = base::WriteShortNumber(at, static_cast<uint32_t>(number));
  } else {
    at = std::to_chars(at, at + 20, number).ptr;
  }
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

class RespWriter {
 public:
  RespWriter(std::string& out, RespVersion version) : out_(out), version_(version) {}

  RespVersion version() const { return version_; }

  // Written as one line: line ends in `text` become spaces.
  void Simple(std::string_view text) { AppendLine('+', text); }
  // The first word is the error's code.
  void Error(std::string_view text) { AppendLine('-', text); }
  void Integer(int64_t number) { AppendNumber(':', number); }
  void Bulk(std::string_view bytes) {
    char buffer[kRespNumberBytesMax + kShortBulk + 2];
    char* at = WriteRespNumber(buffer, '$', static_cast<int64_t>(bytes.size()));
    if (bytes.size() > kShortBulk) {
      out_.append(buffer, static_cast<size_t>(at - buffer)).append(bytes).append("\r\n");
      return;
    }
    at = std::copy(bytes.begin(), bytes.end(), at);
    *at++ = '\r';
    *at++ = '\n';
    out_.append(buffer, static_cast<size_t>(at - buffer));
  }
  // A number in decimal digits, so that it need not be rounded.
  void Double(std::string_view digits) {
    if (version_ == RespVersion::k2) return Bulk(digits);
    AppendLine(',', digits);
  }
  // Text for people. `kind` has three letters.
  void Verbatim(std::string_view kind, std::string_view text) {
    if (version_ == RespVersion::k2) return Bulk(text);
    AppendNumber('=', static_cast<int64_t>(kind.size() + 1 + text.size()));
    out_.append(kind).append(":").append(text).append("\r\n");
  }
  void Null() { out_.append(version_ == RespVersion::k2 ? "$-1\r\n" : "_\r\n"); }
  void Boolean(bool value) {
    if (version_ == RespVersion::k2) return Integer(value ? 1 : 0);
    out_.append(value ? "#t\r\n" : "#f\r\n");
  }

  // The caller must then write `count` values, or `pairs` pairs of values for a map.
  void Array(size_t count) { AppendNumber('*', static_cast<int64_t>(count)); }
  void Map(size_t pairs) {
    if (version_ == RespVersion::k2) return Array(2 * pairs);
    AppendNumber('%', static_cast<int64_t>(pairs));
  }

 private:
  static constexpr size_t kShortBulk = 100;  // appended in one piece

  void AppendNumber(char kind, int64_t number) {
    char buffer[kRespNumberBytesMax];
    out_.append(buffer, static_cast<size_t>(WriteRespNumber(buffer, kind, number) - buffer));
  }
  void AppendLine(char kind, std::string_view text) {
    out_.push_back(kind);
    const size_t begin = out_.size();
    out_.append(text);
    for (size_t i = begin; i < out_.size(); ++i) {
      if (out_[i] == '\r' || out_[i] == '\n') out_[i] = ' ';
    }
    out_.append("\r\n");
  }

  std::string& out_;
  RespVersion version_;
};

}  // namespace headgate::wire
