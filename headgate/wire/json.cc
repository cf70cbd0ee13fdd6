#include "headgate/wire/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <limits>

#include "headgate/base/check.h"
#include "headgate/base/json.h"

namespace headgate::wire {
namespace {

const Json kNullValue;
const std::vector<Json> kNoItems;
const std::vector<Json::Member> kNoMembers;

constexpr double kWholeMax = 0x1p63;
constexpr double kCountMax = 0x1p64;

using ErrorCode = boost::json::error_code;

// Builds a value from the events of Boost.JSON. Its own tree would find members by a hash that a
// sender can make collide.
class JsonBuilder {
 public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  explicit JsonBuilder(size_t values_max) : values_left_(values_max) {}

  Json Take() { return std::move(whole_); }

  bool on_document_begin(ErrorCode& /*code*/) { return true; }
  bool on_document_end(ErrorCode& /*code*/) { return true; }
  bool on_object_begin(ErrorCode& /*code*/) { return Open(Json::Object()); }
  bool on_object_end(size_t /*size*/, ErrorCode& code) { return Close(code); }
  bool on_array_begin(ErrorCode& /*code*/) { return Open(Json::Array()); }
  bool on_array_end(size_t /*size*/, ErrorCode& code) { return Close(code); }
  bool on_key_part(boost::json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_key(boost::json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    AddPart(part);
    open_.back().name = TakeText();
    return true;
  }
  bool on_string_part(boost::json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_string(boost::json::string_view part, size_t /*size*/, ErrorCode& code) {
    AddPart(part);
    return Put(TakeText(), code);
  }
  bool on_number_part(boost::json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_int64(int64_t value, boost::json::string_view /*part*/, ErrorCode& code) {
    return Put(value, code);
  }
  bool on_uint64(uint64_t value, boost::json::string_view /*part*/, ErrorCode& code) {
    return Put(value, code);
  }
  bool on_double(double value, boost::json::string_view /*part*/, ErrorCode& code) {
    return Put(value, code);
  }
  bool on_bool(bool value, ErrorCode& code) { return Put(value, code); }
  bool on_null(ErrorCode& code) { return Put(nullptr, code); }
  bool on_comment_part(boost::json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_comment(boost::json::string_view /*part*/, ErrorCode& /*code*/) { return true; }

 private:
  // An object or array that is not complete yet.
  struct Unfinished {
    Json value;
    std::string name;  // of the member that comes next
  };

  bool AddPart(boost::json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  std::string TakeText() { return std::exchange(text_, {}); }
  bool Open(Json value) {
    open_.push_back({.value = std::move(value), .name = {}});
    return true;
  }
  bool Close(ErrorCode& code) {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return Put(std::move(value), code);
  }
  bool Put(Json value, ErrorCode& code) {
    if (values_left_ == 0) {
      code = boost::json::error::array_too_large;
      return false;
    }
    --values_left_;
    if (open_.empty()) {
      whole_ = std::move(value);
    } else if (Unfinished& last = open_.back(); last.value.is_array()) {
      last.value.Append(std::move(value));
    } else {
      last.value.Add(last.name, std::move(value));
    }
    return true;
  }

  size_t values_left_;
  Json whole_;
  std::vector<Unfinished> open_;
  std::string text_;  // of the name or string that is being read
};

}  // namespace

Json Json::Array(std::vector<Json> items) {
  Json array;
  array.value_ = std::move(items);
  return array;
}

Json Json::Object(std::vector<Member> members) {
  Json object;
  object.value_ = std::move(members);
  return object;
}

std::optional<Json> Json::Parse(std::string_view text, size_t values_max) {
  boost::json::parse_options options;
  options.max_depth = kDepthMax;
  boost::json::basic_parser<JsonBuilder> parser(options, values_max);
  ErrorCode error;
  const size_t taken = parser.write_some(false, text.data(), text.size(), error);
  if (error || taken != text.size() || !parser.done()) return std::nullopt;
  return parser.handler().Take();
}

int64_t Json::whole(int64_t otherwise) const {
  using Limits = std::numeric_limits<int64_t>;
  if (const auto* const count = std::get_if<uint64_t>(&value_))
    return static_cast<int64_t>(std::min(*count, static_cast<uint64_t>(Limits::max())));
  if (const auto* const negative = std::get_if<int64_t>(&value_)) return *negative;
  const auto* const fraction = std::get_if<double>(&value_);
  if (fraction == nullptr || std::isnan(*fraction)) return otherwise;
  if (*fraction >= kWholeMax) return Limits::max();
  return *fraction < -kWholeMax ? Limits::min() : static_cast<int64_t>(*fraction);
}

uint64_t Json::count(uint64_t otherwise) const {
  if (const auto* const count = std::get_if<uint64_t>(&value_)) return *count;
  if (Is<int64_t>()) return 0;
  const auto* const fraction = std::get_if<double>(&value_);
  if (fraction == nullptr || std::isnan(*fraction)) return otherwise;
  if (*fraction >= kCountMax) return std::numeric_limits<uint64_t>::max();
  return *fraction <= 0 ? 0 : static_cast<uint64_t>(*fraction);
}

double Json::number(double otherwise) const {
  if (const auto* const count = std::get_if<uint64_t>(&value_)) return static_cast<double>(*count);
  if (const auto* const whole = std::get_if<int64_t>(&value_)) return static_cast<double>(*whole);
  const auto* const fraction = std::get_if<double>(&value_);
  return fraction == nullptr ? otherwise : *fraction;
}

const std::vector<Json>& Json::items() const {
  const auto* const items = std::get_if<std::vector<Json>>(&value_);
  return items == nullptr ? kNoItems : *items;
}

const std::vector<Json::Member>& Json::members() const {
  const auto* const members = std::get_if<std::vector<Member>>(&value_);
  return members == nullptr ? kNoMembers : *members;
}

const Json* Json::Find(std::string_view name) const {
  const std::vector<Member>& all = members();
  const auto found = std::find_if(all.rbegin(), all.rend(),
                                  [name](const Member& member) { return member.name == name; });
  return found == all.rend() ? nullptr : &found->value;
}

const Json& Json::operator[](std::string_view name) const {
  const Json* const found = Find(name);
  return found == nullptr ? kNullValue : *found;
}

const Json& Json::operator[](size_t index) const {
  return index < items().size() ? items()[index] : kNullValue;
}

Json& Json::operator[](std::string_view name) {
  if (const Json* const found = Find(name)) return const_cast<Json&>(*found);
  Add(name, nullptr);
  return std::get<std::vector<Member>>(value_).back().value;
}

void Json::Add(std::string_view name, Json value) {
  if (is_null()) value_ = std::vector<Member>();
  HEADGATE_CHECK(is_object());
  std::get<std::vector<Member>>(value_).push_back(
      {.name = std::string(name), .value = std::move(value)});
}

void Json::Append(Json item) {
  if (is_null()) value_ = std::vector<Json>();
  HEADGATE_CHECK(is_array());
  std::get<std::vector<Json>>(value_).push_back(std::move(item));
}

std::string Json::Text() const {
  std::string out;
  Write(std::nullopt, 0, out);
  return out;
}

std::string Json::IndentedText(size_t spaces) const {
  std::string out;
  Write(spaces, 0, out);
  return out;
}

void Json::Write(std::optional<size_t> spaces, size_t level, std::string& out) const {
  const auto break_line = [&](size_t at) {
    if (spaces) out.append(1, '\n').append(*spaces * at, ' ');
  };
  if (is_null()) {
    out += "null";
  } else if (is_bool()) {
    base::AppendJsonBool(truth(), out);
  } else if (Is<uint64_t>()) {
    base::AppendJsonNumber(count(), out);
  } else if (Is<int64_t>()) {
    base::AppendJsonNumber(whole(), out);
  } else if (Is<double>()) {
    // JSON has no infinities and no NaN (RFC 8259, section 6).
    out += std::isfinite(number()) ? fmt::format("{}", number()) : "null";
  } else if (is_string()) {
    base::AppendJsonString(text(), out);
  } else if (is_array()) {
    out += '[';
    for (const Json& item : items()) {
      if (&item != &items().front()) out += ',';
      break_line(level + 1);
      item.Write(spaces, level + 1, out);
    }
    if (!items().empty()) break_line(level);
    out += ']';
  } else {
    out += '{';
    for (const Member& member : members()) {
      if (&member != &members().front()) out += ',';
      break_line(level + 1);
      base::AppendJsonString(member.name, out);
      out += spaces ? ": " : ":";
      member.value.Write(spaces, level + 1, out);
    }
    if (!members().empty()) break_line(level);
    out += '}';
  }
}

}  // namespace headgate::wire
