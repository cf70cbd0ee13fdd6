#include "headgate/http/http1/head_fields.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/http/shared_rules.h"
#include "headgate/http/token.h"

namespace headgate::http::http1 {
namespace {

using base::EqualsIgnoreCase;

// More names in Connection than any client sends. Each name costs a search of all fields.
constexpr size_t kNominatedMax = 16;

constexpr Refusal kMalformed{400, "a field of the head is malformed",
                             "a field is NAME: VALUE, without control characters"};
constexpr Refusal kTooManyFields{431, "too many fields", "send fewer fields"};
constexpr Refusal kTooManyNominated{400, "Connection names too many fields", kAmbiguous};
constexpr Refusal kNotNominated{400, "Connection names a field that is not its to remove",
                                kAmbiguous};
constexpr Refusal kLengthTwice{400, "the length of the body is stated twice", kAmbiguous};
constexpr Refusal kNoLength{400, "Content-Length is not a number",
                            "write Content-Length in decimal digits only"};
constexpr Refusal kOtherCoding{400, "chunked is the only transfer coding", kAmbiguous};
constexpr Refusal kAlias{400, "a field looks like one that states the length of the body",
                         kAmbiguous};

template <typename Predicate>
constexpr std::array<bool, 256> Table(Predicate holds) {
  std::array<bool, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = holds(static_cast<char>(i));
  return table;
}
constexpr std::array<bool, 256> kNameChars = Table(IsTokenChar);
// Bytes above 0x7f are allowed (obs-text).
constexpr std::array<bool, 256> kValueChars =
    Table([](char c) { return c == '\t' || !base::IsControl(c); });

bool Consists(std::string_view text, const std::array<bool, 256>& of) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return of[static_cast<unsigned char>(c)]; });
}

// The fields that are taken out.
enum class Known : uint8_t {
  kNone,
  kHost,
  kLength,
  kCoding,
  kConnection,
  kUpgrade,
  kTe,
  kExpect,
  kDropped,
};

Known KnownField(std::string_view name) {
  const auto known = [name](std::string_view other, Known field) {
    return EqualsIgnoreCase(name, other) ? field : Known::kNone;
  };
  switch (name.size()) {
    case 2:
      return known("TE", Known::kTe);
    case 4:
      return known("Host", Known::kHost);
    case 6:
      return known("Expect", Known::kExpect);
    case 7:
      return known("Upgrade", Known::kUpgrade);
    case 10:
      return EqualsIgnoreCase(name, "Keep-Alive") ? Known::kDropped
                                                  : known("Connection", Known::kConnection);
    case 14:
      return EqualsIgnoreCase(name, "HTTP2-Settings") ? Known::kDropped
                                                      : known("Content-Length", Known::kLength);
    case 16:
      return known("Proxy-Connection", Known::kDropped);
    case 17:
      return known("Transfer-Encoding", Known::kCoding);
    default:
      return Known::kNone;
  }
}

// Reads one head.
class Reader {
 public:
  Reader(std::span<const std::string> never_nominated, bool keeps_nominated, Fields& fields,
         ConnectionFields& connection)
      : never_nominated_(never_nominated),
        keeps_nominated_(keeps_nominated),
        fields_(fields),
        connection_(connection) {}

  Refusal Take(std::string_view name, std::string_view value) {
    switch (KnownField(name)) {
      case Known::kNone:
        if (LooksLikeFramingField(name)) return kAlias;
        fields_.Add(name, value);
        return {};
      case Known::kHost:
        ++connection_.host_count;
        connection_.host = value;
        return {};
      case Known::kLength:
        return TakeLength(value);
      case Known::kCoding:
        if (connection_.length || connection_.chunked) return kLengthTwice;
        if (!EqualsIgnoreCase(value, "chunked")) return kOtherCoding;
        connection_.chunked = true;
        return {};
      case Known::kConnection:
        return TakeOptions(value);
      case Known::kUpgrade:
        connection_.upgrade_to = upgrades_++ == 0 ? value : std::string_view();
        return {};
      case Known::kTe:
        while (!value.empty()) {
          if (EqualsIgnoreCase(base::TakeListItem(value), "trailers"))
            connection_.accepts_trailers = true;
        }
        return {};
      case Known::kExpect:
        (EqualsIgnoreCase(value, "100-continue") ? connection_.expects_continue
                                                 : connection_.expects_other) = true;
        return {};
      case Known::kDropped:
        break;
    }
    return {};
  }

  void RemoveNominated() {
    for (size_t i = 0; i < nominated_count_; ++i) fields_.Remove(nominated_[i]);
  }

 private:
  Refusal TakeLength(std::string_view value) {
    if (connection_.length || connection_.chunked) return kLengthTwice;
    constexpr size_t kDigitsMax = 18;  // below 2^63
    if (value.empty() || !std::all_of(value.begin(), value.end(), base::IsDigit)) return kNoLength;
    // Some readers take leading zeros for octal.
    if (value.size() > 1 && value.front() == '0') return kNoLength;
    if (value.size() > kDigitsMax) return kBodyTooLarge;
    uint64_t length = 0;
    for (const char digit : value) length = length * 10 + static_cast<uint64_t>(digit - '0');
    connection_.length = length;
    return {};
  }

  Refusal TakeOptions(std::string_view value) {
    while (!value.empty()) {
      const std::string_view option = base::TakeListItem(value);
      if (option.empty()) continue;
      if (!IsToken(option)) return kMalformed;
      if (EqualsIgnoreCase(option, "close")) {
        connection_.close = true;
      } else if (EqualsIgnoreCase(option, "keep-alive")) {
        connection_.keep_alive = true;
      } else if (EqualsIgnoreCase(option, "Upgrade")) {
        connection_.upgrade = true;
      } else if (!keeps_nominated_ &&
                 (KnownField(option) == Known::kNone || IsEndToEnd(option, {}))) {
        if (IsEndToEnd(option, never_nominated_)) return kNotNominated;
        if (nominated_count_ == nominated_.size()) return kTooManyNominated;
        nominated_[nominated_count_++] = option;
      }
    }
    return {};
  }

  const std::span<const std::string> never_nominated_;
  const bool keeps_nominated_;
  Fields& fields_;
  ConnectionFields& connection_;
  uint32_t upgrades_ = 0;
  std::array<std::string_view, kNominatedMax> nominated_{};
  size_t nominated_count_ = 0;
};

}  // namespace

Refusal ReadFieldLines(std::string_view lines, const Bounds& bounds,
                       std::span<const std::string> never_nominated, bool keeps_nominated,
                       Fields& fields, ConnectionFields& connection) {
  Reader reader(never_nominated, keeps_nominated, fields, connection);
  for (size_t count = 0; !lines.empty(); ++count) {
    if (count == bounds.fields_max) return kTooManyFields;
    const size_t end = lines.find('\r');
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0) return kMalformed;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 1);
    if (!Consists(name, kNameChars) || !Consists(value, kValueChars)) return kMalformed;
    if (const Refusal refusal = reader.Take(name, base::Trimmed(value))) return refusal;
  }
  reader.RemoveNominated();
  return {};
}

}  // namespace headgate::http::http1
