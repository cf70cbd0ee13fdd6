// The mappings of a rule file: the words that they may contain, and the values of these words.
//
// A word of Envoy's rate limit service is accepted anywhere, because the service's loader checks
// the word and not its place. In a wrong place it loads without effect; here this is a warning. A
// word of Headgate's own in a wrong place is a problem. Messages that the service also has are
// worded as in the service.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/problem.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::read {

// In alphabetical order of their texts.
enum class Word : uint8_t {
  kAlgorithm,
  kAlign,
  kAllOrNothing,
  kBlock,
  kBurst,
  kCost,
  kCount,
  kCountDenied,
  kDescriptors,
  kDetailedMetric,
  kDomain,
  kFallbackShare,
  kGrpcStatus,
  kKey,
  kMax,
  kMaxDelay,
  kMetadata,
  kName,
  kOf,
  kOnStoreFailure,
  kOverdraw,
  kPer,
  kPercent,
  kPeriod,
  kPlans,
  kQueue,
  kQuotaMode,
  kQuotaUnit,
  kRateLimit,
  kRateLimitFields,
  kRateLimits,
  kRefusal,
  kReplaces,
  kRequests,
  kRequestsPerUnit,
  kReserve,
  kRollout,
  kShadow,
  kShadowMode,
  kShareThreshold,
  kSharing,
  kStatus,
  kStrict,
  kTimezone,
  kTtl,
  kUnit,
  kUnlimited,
  kValue,
  kValueToMetric,
};
inline constexpr size_t kWordCount = static_cast<size_t>(Word::kValueToMetric) + 1;

std::string_view TextOf(Word word);

// The things that a mapping can describe.
enum class Context : uint8_t {
  kFile = 1,
  kDescriptor = 2,
  kLimit = 4,
  kReplaced = 8,
  kRollout = 16,
  kCost = 32,
  kCount = 64
};

// The values of a mapping, indexed by word. If a word occurs twice, the last value counts.
class Fields {
 public:
  explicit Fields(Mark mark) : mark_(mark) {}

  // Null if the word is absent or has been reported.
  const DocumentNode* value(Word word) const { return values_[Index(word)]; }
  bool has(Word word) const { return value(word) != nullptr; }
  // Whether any of Headgate's own words is present.
  bool has_ours() const;
  // Whether a problem with the word has been reported. Then the word counts as absent, but a reader
  // should not report that it is missing.
  bool reported(Word word) const { return reported_[Index(word)]; }
  bool any_reported() const { return reported_.any(); }
  // The position of the value, or of the mapping if the word is absent.
  Mark mark(Word word) const { return has(word) ? value(word)->mark : mark_; }
  Mark mark() const { return mark_; }
  // All values of a repeated `rate_limit`, which are read as one.
  std::span<const DocumentNode* const> rate_limits() const { return rate_limits_; }

 private:
  friend class FieldReader;
  static size_t Index(Word word) { return static_cast<size_t>(word); }

  Mark mark_;
  std::array<const DocumentNode*, kWordCount> values_{};
  std::bitset<kWordCount> reported_;
  std::vector<const DocumentNode*> rate_limits_;
};

// Reads fields and reports the problems in them.
class FieldReader {
 public:
  FieldReader(ProblemList& problems, ProblemList& warnings)
      : problems_(problems), warnings_(warnings) {}

  // Reads the words of a mapping, or of several mappings that are read as one.
  Fields Read(std::span<const DocumentNode* const> mappings, Context context);
  Fields Read(const DocumentNode& mapping, Context context);

  // An absent or null value, or one of a wrong type (which is reported), reads as the zero of the
  // type.
  std::string_view Text(Fields& fields, Word word);
  bool Truth(Fields& fields, Word word, std::string_view choices = "true or false");
  uint32_t Unsigned32(Fields& fields, Word word);
  uint64_t Unsigned64(Fields& fields, Word word);
  // The mappings of a list. `go_type` is the name of the type in the service's messages.
  std::span<const DocumentNode* const> List(Fields& fields, Word word, std::string_view go_type);

  bool full() const { return problems_.full(); }
  void Report(Mark mark, std::string message, std::string hint = {}) {
    problems_.Add(mark, std::move(message), std::move(hint));
  }
  // Reports a problem at the value of the word. From then on the word counts as absent and
  // reported.
  void Report(Fields& fields, Word word, std::string message, std::string hint = {});
  // From now on the word counts as absent and reported.
  static void Forget(Fields& fields, Word word);
  void Warn(Mark mark, std::string message, std::string hint) {
    warnings_.Add(mark, std::move(message), std::move(hint));
  }
  // Reports a wrong type: "error loading config file: yaml: unmarshal errors: line 3: cannot
  // unmarshal !!str `x` into bool".
  void ReportType(const DocumentNode& node, std::string_view go_type, std::string hint);

 private:
  void ReadPair(Fields& fields, const DocumentNode& key, const DocumentNode& value,
                Context context);
  bool CheckContext(Fields& fields, const DocumentNode& key, Word word, Context context);
  bool CheckValue(const DocumentNode& value, Word word);
  bool CheckItems(const DocumentNode& list);
  bool CheckAnyMapping(const DocumentNode& mapping);
  std::optional<Word> CheckWord(const DocumentNode& key);
  uint64_t Number(Fields& fields, Word word, uint64_t most, std::string_view go_type);

  ProblemList& problems_;
  ProblemList& warnings_;
};

}  // namespace headgate::rule::read
