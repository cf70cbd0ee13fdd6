#include "headgate/front/api/check_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "headgate/base/text.h"
#include "headgate/front/api/reservation.h"
#include "headgate/http/handler.h"
#include "headgate/permit/permit.h"
#include "headgate/rule/request_content.h"
#include "headgate/rule/rule_names.h"
#include "headgate/wire/bound_id.h"

namespace headgate::front::api {
namespace {

constexpr uint64_t kExpiresMsMin = 1000;
constexpr uint64_t kExpiresMsMax =
    std::chrono::duration_cast<std::chrono::milliseconds>(kReservationExpiresMax).count();
constexpr uint64_t kTtlMsMin =
    std::chrono::duration_cast<std::chrono::milliseconds>(permit::kTtlMin).count();
constexpr uint64_t kTtlMsMax =
    std::chrono::duration_cast<std::chrono::milliseconds>(permit::kTtlMax).count();
constexpr uint64_t kCostMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kRequestsMax = std::numeric_limits<uint32_t>::max();
// The part of a body that an error quotes, in bytes.
constexpr size_t kQuotedBytesMax = 60;

using Where = CheckReader::Where;
using Field = CheckReader::Field;

struct FieldRow {
  Where where;
  std::string_view name;
  Field field;
  JsonKind kind;
  BodyKind least =
      BodyKind::kQuestion;  // the field is allowed in bodies of this kind and the later ones
};
constexpr FieldRow kFields[] = {
    {Where::kTop, "domain", Field::kDomain, JsonKind::kString},
    {Where::kTop, "descriptors", Field::kDescriptors, JsonKind::kArray},
    {Where::kTop, "cost", Field::kRequestCost, JsonKind::kNumber},
    {Where::kTop, "id", Field::kId, JsonKind::kString, BodyKind::kRefund},
    {Where::kTop, "expires_ms", Field::kExpires, JsonKind::kNumber, BodyKind::kReserve},
    {Where::kTop, "ttl_ms", Field::kTtl, JsonKind::kNumber, BodyKind::kAcquire},
    {Where::kDescriptor, "entries", Field::kEntries, JsonKind::kArray},
    {Where::kDescriptor, "cost", Field::kCost, JsonKind::kNumber},
    {Where::kDescriptor, "limit", Field::kLimit, JsonKind::kObject},
    {Where::kEntry, "key", Field::kKey, JsonKind::kString},
    {Where::kEntry, "value", Field::kValue, JsonKind::kString},
    {Where::kLimit, "requests_per_unit", Field::kRequestsPerUnit, JsonKind::kNumber},
    {Where::kLimit, "unit", Field::kUnit, JsonKind::kString},
};

// By field. For kNone: the kind of the document itself and of the elements of both arrays.
constexpr auto kKinds = [] {
  std::array<JsonKind, static_cast<size_t>(Field::kUnit) + 1> kinds{};
  kinds.fill(JsonKind::kObject);
  for (const FieldRow& row : kFields) kinds[static_cast<size_t>(row.field)] = row.kind;
  return kinds;
}();

struct UnitName {
  std::string_view name;
  rule::Unit unit;
};
constexpr UnitName kUnits[] = {
    {"second", rule::Unit::kSecond}, {"minute", rule::Unit::kMinute}, {"hour", rule::Unit::kHour},
    {"day", rule::Unit::kDay},       {"week", rule::Unit::kWeek},     {"month", rule::Unit::kMonth},
    {"year", rule::Unit::kYear},
};

std::string_view WithArticle(JsonKind kind) {
  switch (kind) {
    case JsonKind::kString:
      return "a string";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kNull:
      return "null";
  }
  __builtin_unreachable();
}

constexpr uint32_t Bit(Field field) { return 1u << static_cast<uint32_t>(field); }

std::string FieldNames(Where where, BodyKind kind) {
  std::string names;
  for (const FieldRow& row : kFields) {
    const bool of_reservation = row.field == Field::kExpires && kind != BodyKind::kReserve;
    if (row.where == where && row.least <= kind && !of_reservation)
      names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return names;
}

}  // namespace

void CheckReader::Begin(BodyKind kind) {
  kind_ = kind;
  domain_ = rule::kDefaultDomain;
  id_ = {};
  expires_.reset();
  ttl_.reset();
  cost_.reset();
  entries_.clear();
  building_.clear();
  seen_.fill(0);
  error_.reset();
  Enter(Where::kDocument);
}

limiter::Request CheckReader::Finish() {
  descriptors_.clear();
  for (const Building& b : building_) {
    descriptors_.push_back(
        {.entries = std::span(entries_).subspan(b.entries_begin, b.entries_end - b.entries_begin),
         .cost = b.cost ? b.cost : cost_,
         .override_limit = b.limit});
  }
  BindId();
  return {.domain = domain_,
          .descriptors = descriptors_,
          .once = {.id = bound_id_, .window = limiter::kIdRemembered}};
}

void CheckReader::BindId() {
  bound_id_.clear();
  if (id_.empty()) return;
  content_.clear();
  rule::AppendRequestContent(descriptors_, content_);
  // Other requests with ids have prefixes of their own.
  wire::AppendBoundId(kind_ == BodyKind::kRefund ? "refund" : "check", id_, content_, bound_id_);
}

bool CheckReader::BeginObject() {
  if (!IsExpected(JsonKind::kObject)) return false;
  switch (where_) {
    case Where::kDocument:
      return Enter(Where::kTop);
    case Where::kDescriptors:
      if (building_.size() == rule::kDescriptorsMax) {
        return Fail(fmt::format("descriptors has more than {} elements", rule::kDescriptorsMax));
      }
      building_.push_back({.entries_begin = entries_.size(), .entries_end = entries_.size()});
      seen(Where::kDescriptor) = 0;
      return Enter(Where::kDescriptor);
    case Where::kEntries:
      if (entries_.size() - building_.back().entries_begin == rule::kEntriesMax) {
        return Fail(fmt::format("descriptors[{}].entries has more than {} elements",
                                building_.size() - 1, rule::kEntriesMax),
                    "");
      }
      entries_.push_back({});
      seen(Where::kEntry) = 0;
      return Enter(Where::kEntry);
    default:
      seen(Where::kLimit) = 0;
      building_.back().limit.emplace();
      return Enter(Where::kLimit);
  }
}

bool CheckReader::EndObject() {
  switch (where_) {
    case Where::kTop:
      return HasAll(Bit(Field::kDescriptors)) && Enter(Where::kEnd);
    case Where::kDescriptor:
      return HasAll(Bit(Field::kEntries)) && Enter(Where::kDescriptors);
    case Where::kEntry:
      return HasAll(Bit(Field::kKey) | Bit(Field::kValue)) && Enter(Where::kEntries);
    default:
      return HasAll(Bit(Field::kRequestsPerUnit) | Bit(Field::kUnit)) && Enter(Where::kDescriptor);
  }
}

bool CheckReader::BeginArray() {
  if (!IsExpected(JsonKind::kArray)) return false;
  return Enter(field_ == Field::kDescriptors ? Where::kDescriptors : Where::kEntries);
}

bool CheckReader::EndArray() {
  if (where_ == Where::kDescriptors) {
    return building_.empty() ? Fail("descriptors must not be empty") : Enter(Where::kTop);
  }
  Building& descriptor = building_.back();
  descriptor.entries_end = entries_.size();
  if (descriptor.entries_begin == descriptor.entries_end)
    return Fail(fmt::format("descriptors[{}].entries must not be empty", building_.size() - 1));
  return Enter(Where::kDescriptor);
}

bool CheckReader::Name(std::string_view name) {
  field_ = Field::kNone;
  for (const FieldRow& row : kFields) {
    if (row.where != where_ || row.name != name) continue;
    field_ = row.field;
    uint32_t& fields = seen(where_);
    if ((fields & Bit(row.field)) != 0) return Fail(fmt::format("{} is there twice", Path()));
    fields |= Bit(row.field);
    return true;
  }
  const std::string_view shown = name.substr(0, kQuotedBytesMax);
  const std::string of = Path();
  return Fail(
      fmt::format("{} has no field \"{}{}\"", of, shown, shown.size() < name.size() ? "..." : ""),
      fmt::format("its fields are {}", FieldNames(where_, kind_)));
}

bool CheckReader::String(std::string_view text) {
  if (!IsExpected(JsonKind::kString)) return false;
  switch (field_) {
    case Field::kDomain:
      domain_ = text;
      break;
    case Field::kId:
      if (text.size() > wire::kRequestIdBytesMax)
        return Fail(fmt::format("{} is longer than {} bytes", Path(), wire::kRequestIdBytesMax));
      id_ = text;
      break;
    case Field::kKey:
      entries_.back().key = text;
      break;
    case Field::kValue:
      entries_.back().value = text;
      return true;
    default:
      for (const UnitName& unit : kUnits) {
        if (!base::EqualsIgnoreCase(unit.name, text)) continue;
        building_.back().limit->unit = unit.unit;
        return true;
      }
      return Fail(fmt::format("{} must be second, minute, hour, day, week, month or year", Path()));
  }
  return text.empty() ? Fail(fmt::format("{} must not be empty", Path())) : true;
}

bool CheckReader::Number(std::optional<uint64_t> value) {
  if (!IsExpected(JsonKind::kNumber)) return false;
  const auto [least, most] = field_ == Field::kRequestsPerUnit
                                 ? std::pair{uint64_t{0}, kRequestsMax}
                             : field_ == Field::kExpires ? std::pair{kExpiresMsMin, kExpiresMsMax}
                             : field_ == Field::kTtl     ? std::pair{kTtlMsMin, kTtlMsMax}
                                                         : std::pair{uint64_t{0}, kCostMax};
  if (!value || *value < least || *value > most) {
    return Fail(fmt::format("{} must be a whole number from {} to {}", Path(), least, most));
  }
  switch (field_) {
    case Field::kRequestCost:
      cost_ = value;
      break;
    case Field::kExpires:
      expires_ = std::chrono::milliseconds(*value);
      break;
    case Field::kTtl:
      ttl_ = std::chrono::milliseconds(*value);
      break;
    case Field::kCost:
      building_.back().cost = value;
      break;
    default:
      building_.back().limit->requests_per_unit = static_cast<uint32_t>(*value);
  }
  return true;
}

bool CheckReader::IsExpected(JsonKind kind) {
  const JsonKind wanted = kKinds[static_cast<size_t>(field_)];
  if (kind == wanted) return true;
  return Fail(fmt::format("{} must be {}, not {}", Path(), WithArticle(wanted), WithArticle(kind)));
}

bool CheckReader::HasAll(uint32_t fields) {
  field_ = Field::kNone;
  const uint32_t missing = fields & ~seen(where_);
  if (missing == 0) return true;
  const auto* const first =
      std::find_if(std::begin(kFields), std::end(kFields),
                   [&](const FieldRow& row) { return (missing & Bit(row.field)) != 0; });
  return Fail(fmt::format("{} is missing", Child(first->name)));
}

bool CheckReader::Fail(std::string detail, std::string hint) {
  error_ = BodyError{.detail = std::move(detail), .hint = std::move(hint)};
  return false;
}

std::string CheckReader::Path() const {
  for (const FieldRow& row : kFields) {
    if (field_ != Field::kNone && row.field == field_) return Child(row.name);
  }
  const size_t descriptor = building_.empty() ? 0 : building_.size() - 1;
  const size_t entry = building_.empty() ? 0 : entries_.size() - building_.back().entries_begin;
  switch (where_) {
    case Where::kDescriptors:
      return fmt::format("descriptors[{}]", building_.size());
    case Where::kDescriptor:
      return fmt::format("descriptors[{}]", descriptor);
    case Where::kEntries:
      return fmt::format("descriptors[{}].entries[{}]", descriptor, entry);
    case Where::kEntry:
      return fmt::format("descriptors[{}].entries[{}]", descriptor, entry - 1);
    case Where::kLimit:
      return fmt::format("descriptors[{}].limit", descriptor);
    default:
      return "the body";
  }
}

std::string CheckReader::Child(std::string_view name) const {
  if (where_ == Where::kTop) return std::string(name);
  const size_t descriptor = building_.size() - 1;
  switch (where_) {
    case Where::kEntry:
      return fmt::format("descriptors[{}].entries[{}].{}", descriptor,
                         entries_.size() - building_.back().entries_begin - 1, name);
    case Where::kLimit:
      return fmt::format("descriptors[{}].limit.{}", descriptor, name);
    default:
      return fmt::format("descriptors[{}].{}", descriptor, name);
  }
}

}  // namespace headgate::front::api
