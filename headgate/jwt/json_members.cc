#include "headgate/jwt/json_members.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <tuple>

namespace headgate::jwt {

namespace json = boost::json;
using ErrorCode = json::error_code;

// Collects members from the events of Boost.JSON. Each name and each text is appended to the texts
// and removed again if it is not kept.
class MemberCollector {
 public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  // `names`: of the members at the top that are kept; empty: all.
  MemberCollector(JsonMembers& members, std::span<const std::string_view> names)
      : members_(members), names_(names) {}

  bool on_document_begin(ErrorCode& /*code*/) { return true; }
  bool on_document_end(ErrorCode& /*code*/) { return true; }
  bool on_object_begin(ErrorCode& code) {
    if (!open_.empty()) return Enter(Kind::kObject, code);
    open_.push_back({.id = 0, .keeps = Keeps::kMembers});
    return true;
  }
  bool on_object_end(size_t /*size*/, ErrorCode& /*code*/) { return Leave(); }
  bool on_array_begin(ErrorCode& code) { return Enter(Kind::kArray, code); }
  bool on_array_end(size_t /*size*/, ErrorCode& /*code*/) { return Leave(); }
  bool on_key_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_key(json::string_view part, size_t /*size*/, ErrorCode& code) {
    AddPart(part);
    const std::string_view name = std::string_view(texts()).substr(text_begin_);
    // Readers in C end a name at NUL.
    if (name.empty() || name.find('\0') != name.npos) return Refuse(code);
    name_is_kept_ = open_.back().keeps == Keeps::kMembers &&
                    (open_.size() > 1 || names_.empty() ||
                     std::find(names_.begin(), names_.end(), name) != names_.end());
    if (!name_is_kept_) texts().resize(text_begin_);
    name_begin_ = text_begin_;
    text_begin_ = texts().size();
    return true;
  }
  bool on_string_part(json::string_view part, size_t /*size*/, ErrorCode& /*code*/) {
    return AddPart(part);
  }
  bool on_string(json::string_view part, size_t /*size*/, ErrorCode& code) {
    AddPart(part);
    return Add(Kind::kString, code);
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
    AddPart(value ? "true" : "false");
    return Add(Kind::kBool, code);
  }
  bool on_null(ErrorCode& code) { return Add(Kind::kNull, code); }
  bool on_comment_part(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }
  bool on_comment(json::string_view /*part*/, ErrorCode& /*code*/) { return true; }

 private:
  using Kind = JsonMembers::Kind;

  enum class Keeps : uint8_t { kNothing, kMembers, kStrings };
  struct Open {
    uint16_t id = 0;
    Keeps keeps = Keeps::kNothing;
  };

  static bool Refuse(ErrorCode& code) {
    code = json::error::syntax;
    return false;
  }
  std::string& texts() { return members_.texts_; }
  bool AddPart(json::string_view part) {
    texts().append(part.data(), part.size());
    return true;
  }
  bool AddNumber(json::string_view part, ErrorCode& code) {
    AddPart(part);
    return Add(Kind::kNumber, code);
  }
  bool IsKept(Kind kind) const {
    return open_.back().keeps == Keeps::kMembers
               ? name_is_kept_
               : open_.back().keeps == Keeps::kStrings && kind == Kind::kString;
  }
  // The end of a name and a text, or of an item of an array.
  bool Add(Kind kind, ErrorCode& code) {
    if (open_.empty()) return Refuse(code);
    const bool is_item = open_.back().keeps != Keeps::kMembers;
    if (!IsKept(kind)) {
      texts().resize(text_begin_);
      return true;
    }
    if (members_.members_.size() == JsonMembers::kMembersMax) return Refuse(code);
    members_.members_.push_back(
        {.parent = open_.back().id,
         .id = static_cast<uint16_t>(members_.members_.size() + 1),
         .kind = kind,
         .name_begin = static_cast<uint32_t>(is_item ? text_begin_ : name_begin_),
         .text_begin = static_cast<uint32_t>(text_begin_),
         .text_end = static_cast<uint32_t>(texts().size())});
    text_begin_ = texts().size();
    return true;
  }
  bool Enter(Kind kind, ErrorCode& code) {
    if (open_.empty()) return Refuse(code);
    Open inner;
    if (IsKept(kind)) {
      if (!Add(kind, code)) return false;
      inner = {.id = members_.members_.back().id,
               .keeps = kind == Kind::kArray ? Keeps::kStrings : Keeps::kMembers};
    }
    open_.push_back(inner);
    return true;
  }
  bool Leave() {
    open_.pop_back();
    return true;
  }

  JsonMembers& members_;
  const std::span<const std::string_view> names_;
  std::vector<Open> open_;  // objects and arrays; empty before the first
  bool name_is_kept_ = false;
  size_t name_begin_ = 0;
  size_t text_begin_ = 0;  // of the name or text that is being read
};

static_assert(JsonMembers::kMembersMax < std::numeric_limits<uint16_t>::max());

bool JsonMembers::Parse(std::string_view json) { return ParseOnly(json, {}); }

bool JsonMembers::ParseOnly(std::string_view json, std::span<const std::string_view> names) {
  members_.clear();
  texts_.clear();
  // Texts are never longer than their JSON.
  if (json.size() > std::numeric_limits<uint32_t>::max()) return false;
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::basic_parser<MemberCollector> parser(options, *this, names);
  ErrorCode code;
  const size_t taken = parser.write_some(false, json.data(), json.size(), code);
  if (code || taken != json.size() || !parser.done()) return false;
  const auto order_of = [this](const Stored& member) {
    return std::tuple(member.parent, NameOf(member), member.id);
  };
  std::sort(members_.begin(), members_.end(),
            [&](const Stored& a, const Stored& b) { return order_of(a) < order_of(b); });
  members_.shrink_to_fit();
  texts_.shrink_to_fit();
  const auto twice = std::adjacent_find(
      members_.begin(), members_.end(), [this](const Stored& a, const Stored& b) {
        return a.parent == b.parent && !NameOf(a).empty() && NameOf(a) == NameOf(b);
      });
  return twice == members_.end();
}

std::string_view JsonMembers::NameOf(const Stored& member) const {
  return std::string_view(texts_).substr(member.name_begin, member.text_begin - member.name_begin);
}

std::string_view JsonMembers::TextOf(const Stored& member) const {
  return std::string_view(texts_).substr(member.text_begin, member.text_end - member.text_begin);
}

const JsonMembers::Stored* JsonMembers::FindStored(uint16_t parent, std::string_view name) const {
  const std::tuple wanted(parent, name);
  const auto found = std::lower_bound(members_.begin(), members_.end(), wanted,
                                      [this](const Stored& member, const auto& w) {
                                        return std::tuple(member.parent, NameOf(member)) < w;
                                      });
  if (found == members_.end() || found->parent != parent || NameOf(*found) != name) return nullptr;
  return &*found;
}

std::optional<JsonMembers::Member> JsonMembers::Find(
    std::span<const std::string_view> names) const {
  const Stored* found = nullptr;
  for (const std::string_view name : names) {
    // An item of an array has an empty name.
    if (name.empty()) return std::nullopt;
    found = FindStored(found == nullptr ? 0 : found->id, name);
    if (found == nullptr) return std::nullopt;
  }
  if (found == nullptr) return std::nullopt;
  return Member{.kind = found->kind, .text = TextOf(*found)};
}

std::vector<std::string_view> JsonMembers::StringsIn(std::string_view name) const {
  std::vector<std::string_view> strings;
  const Stored* const array = name.empty() ? nullptr : FindStored(0, name);
  if (array == nullptr || array->kind != Kind::kArray) return strings;
  for (const Stored& member : members_) {
    if (member.parent == array->id) strings.push_back(TextOf(member));
  }
  return strings;
}

}  // namespace headgate::jwt
