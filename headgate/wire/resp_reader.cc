#include "headgate/wire/resp_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/wire/resp_number.h"

namespace headgate::wire {
namespace {

using Kind = RespValue::Kind;

RespValue Text(Kind kind, std::string_view text) {
  return {.kind = kind, .integer = 0, .text = std::string(text), .items = {}};
}

RespValue Number(Kind kind, int64_t number) {
  return {.kind = kind, .integer = number, .text = {}, .items = {}};
}

// Decimal, with an optional sign: servers may write `+5` and `-0`.
bool IsBigNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsDouble(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eEinfa") == std::string_view::npos;
}

void Append(const RespValue& value, std::string& out) {
  switch (value.kind) {
    case Kind::kNull:
      out += "nil";
      return;
    case Kind::kSimple:
      out += value.text;
      return;
    case Kind::kError:
      out += '-' + value.text;
      return;
    case Kind::kInteger:
      out += fmt::format("{}", value.integer);
      return;
    case Kind::kBulk:
    case Kind::kVerbatim:
      out += '"' + value.text + '"';
      return;
    case Kind::kBoolean:
      out += value.integer != 0 ? "true" : "false";
      return;
    case Kind::kDouble:
    case Kind::kBigNumber:
      out += value.text;
      return;
    case Kind::kArray:
    case Kind::kSet:
    case Kind::kPush:
    case Kind::kMap:
      break;
  }
  const bool map = value.kind == Kind::kMap;
  out += map ? '{' : '[';
  for (size_t i = 0; i < value.items.size(); ++i) {
    if (i > 0) out += map && i % 2 == 1 ? ": " : ", ";
    Append(value.items[i], out);
  }
  out += map ? '}' : ']';
}

}  // namespace

std::string RespValue::ToString() const {
  std::string out;
  Append(*this, out);
  return out;
}

RespReader::Step RespReader::Read(std::string_view input, size_t& consumed) {
  consumed = 0;
  if (!error_.empty()) return Step::kError;
  while (true) {
    switch (ReadOne(input.substr(consumed), consumed)) {
      case Progress::kGoOn:
        break;
      case Progress::kWhole:
        return Step::kValue;
      case Progress::kStarved:
        return Step::kIncomplete;
      case Progress::kFailed:
        return Step::kError;
    }
  }
}

// Reads one scalar, or the header of an aggregate.
RespReader::Progress RespReader::ReadOne(std::string_view input, size_t& consumed) {
  if (bulk_bytes_ >= 0) return ReadBulk(input, consumed);
  const std::string_view searched = input.substr(0, bounds_.line_bytes_max + 2);
  const size_t end = searched.find("\r\n", scanned_ > 0 ? scanned_ - 1 : 0);
  if (end == std::string_view::npos) {
    scanned_ = searched.size();
    return searched.size() < input.size() ? Fail("a line is longer than its bound")
                                          : Progress::kStarved;
  }
  scanned_ = 0;
  consumed += end + 2;
  const Progress progress = ReadHeader(input.substr(0, end));
  if (progress != Progress::kGoOn || bulk_bytes_ < 0) return progress;
  return ReadBulk(input.substr(end + 2), consumed);
}

RespReader::Progress RespReader::ReadHeader(std::string_view line) {
  if (line.empty()) return Fail("a value begins with an empty line");
  if (open_.empty()) values_ = 0;
  if (++values_ > bounds_.values_max) return Fail("more values than one reply may have");
  const char kind = line[0];
  const std::string_view rest = line.substr(1);
  switch (kind) {
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
      return OpenItems(kind, rest);
    case '$':
    case '=':
    case '!': {
      const auto bytes = RespNumber(rest);
      if (!bytes || *bytes < -1 || *bytes > static_cast<int64_t>(bounds_.bulk_bytes_max)) {
        return Fail(fmt::format("bad length of a bulk: {}", rest.substr(0, 32)));
      }
      if (*bytes < 0) return kind == '$' ? Close({}) : Fail("only a bulk string can be null");
      bulk_bytes_ = *bytes;
      bulk_kind_ = kind == '$' ? Kind::kBulk : kind == '=' ? Kind::kVerbatim : Kind::kError;
      return Progress::kGoOn;
    }
    default:
      return ReadScalar(kind, rest);
  }
}

RespReader::Progress RespReader::ReadScalar(char kind, std::string_view rest) {
  switch (kind) {
    case '+':
      return Close(Text(Kind::kSimple, rest));
    case '-':
      return Close(Text(Kind::kError, rest));
    case ':':
      if (const auto number = RespNumber(rest.substr(rest.starts_with('+') ? 1 : 0));
          number && !rest.starts_with("+-")) {
        return Close(Number(Kind::kInteger, *number));
      }
      return Fail(fmt::format("bad integer: {}", rest.substr(0, 32)));
    case '_':
      return rest.empty() ? Close({}) : Fail("null has something behind it");
    case '#':
      if (rest == "t" || rest == "f") return Close(Number(Kind::kBoolean, rest == "t" ? 1 : 0));
      return Fail(fmt::format("bad boolean: {}", rest.substr(0, 32)));
    case ',':
      return IsDouble(rest) ? Close(Text(Kind::kDouble, rest))
                            : Fail(fmt::format("bad double: {}", rest.substr(0, 32)));
    case '(':
      if (IsBigNumber(rest)) return Close(Text(Kind::kBigNumber, rest));
      return Fail(fmt::format("bad big number: {}", rest.substr(0, 32)));
    default:
      return Fail(
          fmt::format("no type begins with byte 0x{:02x}", static_cast<unsigned char>(kind)));
  }
}

RespReader::Progress RespReader::OpenItems(char kind, std::string_view count_text) {
  const auto count = RespNumber(count_text);
  if (kind == '*' && count == -1) return Close({});  // RESP2's null array
  const bool pairs = kind == '%' || kind == '|';
  // Do not reserve memory for the items: memory grows with the bytes that arrive, not with the
  // number that is announced.
  if (!count || *count < 0 || *count > static_cast<int64_t>(bounds_.values_max) / (pairs ? 2 : 1)) {
    return Fail(fmt::format("bad count of values: {}", count_text.substr(0, 32)));
  }
  RespValue value;
  value.kind = kind == '*'   ? Kind::kArray
               : kind == '~' ? Kind::kSet
               : kind == '>' ? Kind::kPush
                             : Kind::kMap;
  if (*count == 0) return kind == '|' ? Progress::kGoOn : Close(std::move(value));
  if (open_.size() >= bounds_.depth_max) return Fail("values are nested deeper than their bound");
  open_.push_back(
      {.value = std::move(value), .left = pairs ? 2 * *count : *count, .attribute = kind == '|'});
  return Progress::kGoOn;
}

RespReader::Progress RespReader::ReadBulk(std::string_view input, size_t& consumed) {
  const auto bytes = static_cast<size_t>(bulk_bytes_);
  if (input.size() < bytes + 2) return Progress::kStarved;
  if (input.substr(bytes, 2) != "\r\n") return Fail("a bulk does not end where its length says");
  bulk_bytes_ = -1;
  consumed += bytes + 2;
  std::string_view text = input.substr(0, bytes);
  if (bulk_kind_ == Kind::kVerbatim) {
    if (text.size() < 4 || text[3] != ':') return Fail("a verbatim text does not say its kind");
    text.remove_prefix(4);
  }
  if (!open_.empty()) return Close(Text(bulk_kind_, text));
  // A bulk at top level: reuse the memory of the previous reply.
  value_.kind = bulk_kind_;
  value_.integer = 0;
  value_.text.assign(text);
  value_.items.clear();
  return Progress::kWhole;
}

// Adds a complete value to its aggregate, and closes each aggregate that it completes.
RespReader::Progress RespReader::Close(RespValue value) {
  while (!open_.empty()) {
    Open& parent = open_.back();
    parent.value.items.push_back(std::move(value));
    if (--parent.left > 0) return Progress::kGoOn;
    const bool attribute = parent.attribute;
    value = std::move(parent.value);
    open_.pop_back();
    if (attribute) return Progress::kGoOn;
  }
  value_ = std::move(value);
  return Progress::kWhole;
}

RespReader::Progress RespReader::Fail(std::string error) {
  error_ = std::move(error);
  return Progress::kFailed;
}

}  // namespace headgate::wire
