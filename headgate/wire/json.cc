#include "headgate/wire/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/json.h"

namespace headgate::wire {
namespace {

const Json kNullValue;

constexpr double kWholeMax = 0x1p63;
constexpr double kCountMax = 0x1p64;

}  // namespace

// Copies values of Boost.JSON.
class JsonBuilder {
 public:
  static Json Copy(const boost::json::value& value) {
    switch (value.kind()) {
      case boost::json::kind::null:
        return {};
      case boost::json::kind::bool_:
        return value.get_bool();
      case boost::json::kind::int64:
        return Json(value.get_int64());
      case boost::json::kind::uint64:
        return Json(value.get_uint64());
      case boost::json::kind::double_:
        return value.get_double();
      case boost::json::kind::string:
        return std::string(value.get_string().data(), value.get_string().size());
      case boost::json::kind::array:
        return CopyArray(value.get_array());
      case boost::json::kind::object:
        return CopyObject(value.get_object());
    }
    return {};
  }

 private:
  static Json CopyArray(const boost::json::array& array) {
    Json copy = Json::Array();
    copy.items_.reserve(array.size());
    for (const boost::json::value& item : array) copy.items_.push_back(Copy(item));
    return copy;
  }
  static Json CopyObject(const boost::json::object& object) {
    Json copy = Json::Object();
    copy.members_.reserve(object.size());
    for (const auto& member : object)
      copy.Add({member.key().data(), member.key().size()}, Copy(member.value()));
    return copy;
  }
};

Json Json::Array(std::vector<Json> items) {
  Json array;
  array.kind_ = Kind::kArray;
  array.items_ = std::move(items);
  return array;
}

Json Json::Object(std::vector<Member> members) {
  Json object;
  object.kind_ = Kind::kObject;
  object.members_ = std::move(members);
  return object;
}

std::optional<Json> Json::Parse(std::string_view text) {
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = kDepthMax;
  const boost::json::value value =
      boost::json::parse({text.data(), text.size()}, error, boost::json::storage_ptr(), options);
  if (error) return std::nullopt;
  return JsonBuilder::Copy(value);
}

int64_t Json::whole(int64_t otherwise) const {
  using Limits = std::numeric_limits<int64_t>;
  switch (kind_) {
    case Kind::kUnsigned:
      return static_cast<int64_t>(std::min(whole_, static_cast<uint64_t>(Limits::max())));
    case Kind::kNegative:
      return static_cast<int64_t>(whole_);
    case Kind::kFraction:
      if (std::isnan(fraction_)) return otherwise;
      if (fraction_ >= kWholeMax) return Limits::max();
      return fraction_ < -kWholeMax ? Limits::min() : static_cast<int64_t>(fraction_);
    default:
      return otherwise;
  }
}

uint64_t Json::count(uint64_t otherwise) const {
  switch (kind_) {
    case Kind::kUnsigned:
      return whole_;
    case Kind::kNegative:
      return 0;
    case Kind::kFraction:
      if (std::isnan(fraction_)) return otherwise;
      if (fraction_ >= kCountMax) return std::numeric_limits<uint64_t>::max();
      return fraction_ <= 0 ? 0 : static_cast<uint64_t>(fraction_);
    default:
      return otherwise;
  }
}

double Json::number(double otherwise) const {
  switch (kind_) {
    case Kind::kUnsigned:
      return static_cast<double>(whole_);
    case Kind::kNegative:
      return static_cast<double>(static_cast<int64_t>(whole_));
    case Kind::kFraction:
      return fraction_;
    default:
      return otherwise;
  }
}

const Json* Json::Find(std::string_view name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [name](const Member& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &found->value;
}

const Json& Json::operator[](std::string_view name) const {
  const Json* const found = Find(name);
  return found == nullptr ? kNullValue : *found;
}

const Json& Json::operator[](size_t index) const {
  return index < items_.size() ? items_[index] : kNullValue;
}

Json& Json::operator[](std::string_view name) {
  if (const Json* const found = Find(name)) return const_cast<Json&>(*found);
  Add(name, nullptr);
  return members_.back().value;
}

void Json::Add(std::string_view name, Json value) {
  if (is_null()) kind_ = Kind::kObject;
  HEADGATE_CHECK(is_object());
  members_.push_back({.name = std::string(name), .value = std::move(value)});
}

void Json::Append(Json item) {
  if (is_null()) kind_ = Kind::kArray;
  HEADGATE_CHECK(is_array());
  items_.push_back(std::move(item));
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
  switch (kind_) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kFalse:
    case Kind::kTrue:
      return base::AppendJsonBool(truth(), out);
    case Kind::kUnsigned:
      return base::AppendJsonNumber(whole_, out);
    case Kind::kNegative:
      return base::AppendJsonNumber(static_cast<int64_t>(whole_), out);
    case Kind::kFraction:
      // JSON has no other numbers (RFC 8259, section 6).
      out += std::isfinite(fraction_) ? fmt::format("{}", fraction_) : "null";
      return;
    case Kind::kString:
      return base::AppendJsonString(text_, out);
    case Kind::kArray:
      out += '[';
      for (const Json& item : items_) {
        if (&item != &items_.front()) out += ',';
        break_line(level + 1);
        item.Write(spaces, level + 1, out);
      }
      if (!items_.empty()) break_line(level);
      out += ']';
      return;
    case Kind::kObject:
      out += '{';
      for (const Member& member : members_) {
        if (&member != &members_.front()) out += ',';
        break_line(level + 1);
        base::AppendJsonString(member.name, out);
        out += spaces ? ": " : ":";
        member.value.Write(spaces, level + 1, out);
      }
      if (!members_.empty()) break_line(level);
      out += '}';
      return;
  }
}

}  // namespace headgate::wire
