// Builds a limiter::Request from JSON events: objects, arrays, names and values. Refuses anything
// unexpected and names its path, because a misread request would be decided wrongly without anybody
// noticing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/limiter/checker.h"

namespace headgate::front::api {

struct BodyError {
  std::string detail;
  std::string hint;  // may be empty

  bool operator==(const BodyError&) const = default;
};

enum class JsonKind : uint8_t { kString, kNumber, kObject, kArray, kBool, kNull };

// Which paths take a body. Each takes the fields of the ones before it, and more.
enum class BodyKind : uint8_t {
  kQuestion,  // /v1/peek, /v1/reset
  kRefund,    // with an id
  kCheck,
  kReserve,  // /v1/reserve: also the time in which the reservation can be settled
  kAcquire,  // /v1/acquire: also the time after which a permit ends
};

// Reusable, together with its memory. Each event returns false if it is not allowed at this point;
// `error` then says why, and no event may follow before Begin.
class CheckReader {
 public:
  // `kind` matters for hints alone; Misplaced() finds fields that belong to another path.
  void Begin(BodyKind kind);
  bool BeginObject();
  bool EndObject();
  bool BeginArray();
  bool EndArray();
  bool Name(std::string_view name);
  bool String(std::string_view text);
  // `value` is empty for a number that is negative, has a fraction or an exponent, or exceeds 64
  // bits.
  bool Number(std::optional<uint64_t> value);
  bool BoolOrNull(JsonKind kind) { return IsExpected(kind); }

  // Call it after the whole document. The result points to the strings of the events and to this
  // reader's memory.
  limiter::Request Finish();
  // The id as the document has it. The id in the request is bound to the content of the document
  // (wire/bound_id.h), so that an id that passed once never lets a different request pass.
  std::string_view id() const { return id_; }
  // How long a reservation can be settled, if the document says so.
  const std::optional<base::Duration>& expires() const { return expires_; }
  // The time after which a permit ends, if the document says so.
  const std::optional<base::Duration>& ttl() const { return ttl_; }
  const std::optional<BodyError>& error() const { return error_; }

  // The object or array that the next event belongs to, and the field in it. Public for the table
  // in the source file.
  enum class Where : uint8_t {
    kDocument,
    kTop,
    kDescriptors,
    kDescriptor,
    kEntries,
    kEntry,
    kLimit,
    kEnd
  };
  enum class Field : uint8_t {
    kNone,
    kDomain,
    kDescriptors,
    kRequestCost,
    kId,
    kExpires,
    kTtl,
    kEntries,
    kCost,
    kLimit,
    kKey,
    kValue,
    kRequestsPerUnit,
    kUnit,
  };

 private:
  struct Building {
    size_t entries_begin = 0;
    size_t entries_end = 0;
    std::optional<uint64_t> cost{};
    std::optional<rule::OverrideLimit> limit{};
  };

  void BindId();
  bool IsExpected(JsonKind kind);
  // Whether the current object has all fields of a bit set.
  bool HasAll(uint32_t fields);
  bool Enter(Where where) {
    where_ = where;
    field_ = Field::kNone;
    return true;
  }
  bool Fail(std::string detail, std::string hint = "");
  uint32_t& seen(Where where) { return seen_[static_cast<size_t>(where)]; }
  // The path of the value being read: "descriptors[0].entries[1].key".
  std::string Path() const;
  std::string Child(std::string_view name) const;

  BodyKind kind_ = BodyKind::kReserve;
  std::string_view domain_;
  std::string_view id_;
  std::string bound_id_;
  std::string content_;  // of the request, for bound_id_
  std::optional<base::Duration> expires_;
  std::optional<base::Duration> ttl_;
  std::optional<uint64_t> cost_;
  std::vector<rule::Entry> entries_;  // of all descriptors
  std::vector<Building> building_;
  std::vector<rule::Descriptor> descriptors_;
  Where where_ = Where::kDocument;
  Field field_ = Field::kNone;
  // A bit set of the fields seen so far, for each object.
  std::array<uint32_t, static_cast<size_t>(Where::kEnd)> seen_{};
  std::optional<BodyError> error_;
};

}  // namespace headgate::front::api
