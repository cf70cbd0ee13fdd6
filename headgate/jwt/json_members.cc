#include "headgate/jwt/json_members.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <utility>

namespace headgate::jwt {
namespace {

namespace json = boost::json;
using ErrorCode = json::error_code;
using Kind = JsonMembers::Kind;

// Collects members from the events of Boost.JSON.
class Collector {
 public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  explicit Collector(std::vector<JsonMembers::Member>& members) : members_(members) {}

  bool on_document_begin(ErrorCode& /*code*/) { return true; }
  bool on_document_end(ErrorCode& /*code*/) { return true; }
  bool on_object_begin(ErrorCode& code) {
    if (path_sizes_.empty()) {
      path_sizes_.push_back(0);
      return true;
    }
    return Enter(Kind::kObject, code);
  }
  bool on_object_end(size_t /*size*/, ErrorCode& /*code*/) { return Leave(); }
  bool on_array_begin(ErrorCode& code) {
    if (path_sizes_.empty()) return Refuse(code);
    return Enter(Kind::kArray, code);
  }
  bool on_array_end(size_t /*size*/, ErrorCode& /*code*/) { return Leave(); }
  bool on_key_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_key(json::string_view part, size_t /*size*/, ErrorCode& code) {
    AddPart(part);
    const std::string name = std::exchange(text_, {});
    // Paths are joined by NUL.
    if (name.empty() || name.find('\0') != name.npos) return Refuse(code);
    path_.resize(path_sizes_.back());
    if (!path_.empty()) path_.push_back('\0');
    path_.append(name);
    return true;
  }
  bool on_string_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_string(json::string_view part, size_t /*size*/, ErrorCode& code) {
    AddPart(part);
    return Add(Kind::kString, std::exchange(text_, {}), code);
  }
  bool on_number_part(json::string_view part, ErrorCode& /*code*/) { return AddPart(part); }
  bool on_int64(int64_t /*value*/, json::string_view part, ErrorCode& code) {
    return AddNumber(part, code);
  }
  bool on_uint64(uint64_t /*value*/, json::string_view part, ErrorCode& code) {
    return AddNumber(part, code);
  }
  bool on_double(double /*value*/, json::string_view part, ErrorCode& code) {
    return AddNumber(part, code);
  }
  bool on_bool(bool value, ErrorCode& code) {
    return Add(Kind::kBool, value ? "true" : "false", code);
  }
  bool on_null(ErrorCode& code) { return Add(Kind::kNull, {}, code); }
  bool on_comment_part(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_comment(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }

 private:
  static bool Refuse(ErrorCode& code) {
    code = json::error::syntax;
    return false;
  }
  bool AddPart(json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool AddNumber(json::string_view part, ErrorCode& code) {
    AddPart(part);
    return Add(Kind::kNumber, std::exchange(text_, {}), code);
  }
  bool Add(Kind kind, std::string text, ErrorCode& code) {
    if (path_sizes_.empty()) return Refuse(code);
    members_.push_back({.path = path_, .kind = kind, .text = std::move(text)});
    return true;
  }
  bool Enter(Kind kind, ErrorCode& code) {
    Add(kind, {}, code);
    // An item of an array has an empty name.
    if (kind == Kind::kArray) path_.push_back('\0');
    path_sizes_.push_back(path_.size());
    return true;
  }
  bool Leave() {
    path_sizes_.pop_back();
    path_.resize(path_sizes_.empty() ? 0 : path_sizes_.back());
    return true;
  }

  std::vector<JsonMembers::Member>& members_;
  std::string path_;
  std::vector<size_t> path_sizes_;  // of the open objects and arrays; empty before the first
  std::string text_;
};

}  // namespace

bool JsonMembers::Parse(std::string_view json) {
  members_.clear();
  boost::json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<Collector> parser(options, members_);
  ErrorCode code;
  const size_t taken = parser.write_some(false, json.data(), json.size(), code);
  if (code || taken != json.size() || !parser.done()) return false;
  std::stable_sort(members_.begin(), members_.end(),
                   [](const Member& a, const Member& b) { return a.path < b.path; });
  // Items of an array, and all below them, share their paths.
  const auto twice =
      std::adjacent_find(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
        const bool in_array = a.path.ends_with('\0') || a.path.find({"\0\0", 2}) != a.path.npos;
        return a.path == b.path && !in_array;
      });
  return twice == members_.end();
}

const JsonMembers::Member* JsonMembers::Find(std::span<const std::string_view> names) const {
  std::string path;
  for (const std::string_view name : names) {
    if (!path.empty()) path.push_back('\0');
    path.append(name);
  }
  const auto found =
      std::lower_bound(members_.begin(), members_.end(), path,
                       [](const Member& member, const std::string& p) { return member.path < p; });
  return found == members_.end() || found->path != path ? nullptr : &*found;
}

std::vector<std::string_view> JsonMembers::StringsIn(std::string_view name) const {
  std::vector<std::string_view> strings;
  const std::string path = std::string(name) + '\0';
  for (const Member& member : members_) {
    if (member.path == path && member.kind == Kind::kString) strings.push_back(member.text);
  }
  return strings;
}

}  // namespace headgate::jwt
