#include "headgate/front/api/check_json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <functional>
#include <limits>

namespace headgate::front::api {
namespace {

namespace json = boost::json;
using ErrorCode = json::error_code;

std::string_view View(json::string_view text) { return {text.data(), text.size()}; }

// Forwards the events of Boost.JSON, with whole strings and checked numbers.
class Events {
 public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  Events(CheckReader& reader, std::string& text, std::string_view body)
      : reader_(reader), text_(text), body_(body) {}

  bool on_document_begin(ErrorCode& /*code*/) { return true; }
  bool on_document_end(ErrorCode& /*code*/) { return true; }
  bool on_object_begin(ErrorCode& code) { return Goes(reader_.BeginObject(), code); }
  bool on_object_end(size_t /*size*/, ErrorCode& code) { return Goes(reader_.EndObject(), code); }
  bool on_array_begin(ErrorCode& code) { return Goes(reader_.BeginArray(), code); }
  bool on_array_end(size_t /*size*/, ErrorCode& code) { return Goes(reader_.EndArray(), code); }
  bool on_key_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(View(part));
  }
  bool on_key(json::string_view part, size_t size, ErrorCode& code) {
    return Goes(reader_.Name(Whole(View(part), size)), code);
  }
  bool on_string_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(View(part));
  }
  bool on_string(json::string_view part, size_t size, ErrorCode& code) {
    return Goes(reader_.String(Whole(View(part), size)), code);
  }
  bool on_number_part(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_int64(int64_t value, json::string_view /*text*/, ErrorCode& code) {
    return Goes(reader_.Number(value < 0 ? std::nullopt : std::optional<uint64_t>(value)), code);
  }
  bool on_uint64(uint64_t value, json::string_view /*text*/, ErrorCode& code) {
    return Goes(reader_.Number(value), code);
  }
  // 1.0 and 1e3 are whole numbers too (JSON Schema, "integer"), as far as a double can represent
  // them.
  bool on_double(double value, json::string_view /*text*/, ErrorCode& code) {
    constexpr double kExactMax = 9'007'199'254'740'992;  // 2^53
    const bool is_whole = value >= 0 && value <= kExactMax && std::trunc(value) == value;
    return Goes(
        reader_.Number(is_whole ? std::optional(static_cast<uint64_t>(value)) : std::nullopt),
        code);
  }
  bool on_bool(bool /*value*/, ErrorCode& code) {
    return Goes(reader_.BoolOrNull(JsonKind::kBool), code);
  }
  bool on_null(ErrorCode& code) { return Goes(reader_.BoolOrNull(JsonKind::kNull), code); }
  bool on_comment_part(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_comment(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }

 private:
  // Any error code stops the parser; the reader's error is the one that is reported.
  static bool Goes(bool belongs, ErrorCode& code) {
    if (!belongs) code = json::error::syntax;
    return belongs;
  }

  bool AddPart(std::string_view part) {
    if (!in_parts_) {
      // A decoded string is never longer than its source, so no view ever moves.
      text_.reserve(body_.size());
      text_begin_ = text_.size();
      in_parts_ = true;
    }
    text_.append(part);
    return true;
  }

  // Returns the string that ends with this part: the bytes of the body if the string came in one
  // piece and without escapes, otherwise a copy.
  std::string_view Whole(std::string_view part, size_t size) {
    const bool in_body =
        std::greater_equal<>()(part.data(), body_.data()) &&
        std::less_equal<>()(part.data() + part.size(), body_.data() + body_.size());
    if (part.size() == size && (in_body || size == 0)) return part;
    AddPart(part);
    in_parts_ = false;
    return std::string_view(text_).substr(text_begin_);
  }

  CheckReader& reader_;
  std::string& text_;
  const std::string_view body_;
  size_t text_begin_ = 0;  // of the string being read, if it comes in parts
  bool in_parts_ = false;
};

BodyError SyntaxError(const ErrorCode& code, size_t at) {
  if (code == json::error::incomplete)
    return {.detail = "the body is not JSON: it ends too early", .hint = ""};
  if (code == json::error::extra_data) {
    return {.detail = fmt::format("text follows the JSON of the body, at byte {}", at), .hint = ""};
  }
  return {.detail = fmt::format("the body is not JSON: {} at byte {}", code.message(), at),
          .hint = ""};
}

}  // namespace

std::optional<BodyError> CheckParser::Parse(std::string_view body, limiter::Request& request,
                                            BodyKind kind) {
  if (body.empty())
    return BodyError{.detail = "the body is empty", .hint = R"(send {"descriptors": [...]})"};
  text_.clear();
  reader_.Begin(kind);
  json::basic_parser<Events> parser(json::parse_options{}, reader_, text_, body);
  ErrorCode code;
  const size_t taken = parser.write_some(/*more=*/false, body.data(), body.size(), code);
  if (reader_.error()) return reader_.error();
  if (code) return SyntaxError(code, taken);
  if (taken < body.size()) return SyntaxError(json::error::extra_data, taken);
  request = reader_.Finish();
  return std::nullopt;
}

std::optional<BodyError> Misplaced(limiter::Operation operation, const limiter::Request& request,
                                   const CheckParser& parser) {
  if (parser.expires()) return BodyError{.detail = "only /v1/reserve takes expires_ms", .hint = ""};
  if (parser.ttl()) return BodyError{.detail = "only /v1/acquire takes ttl_ms", .hint = ""};
  const bool has_ids =
      operation == limiter::Operation::kTake || operation == limiter::Operation::kRefund;
  if (!has_ids && !request.once.id.empty())
    return BodyError{.detail = "only checks, reservations and refunds have an id", .hint = ""};
  return std::nullopt;
}

}  // namespace headgate::front::api
