#include "headgate/rule/size_cost_reader.h"

#include <fmt/format.h>

#include <array>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/limit_choices.h"

namespace headgate::rule {
namespace {

constexpr std::array<Choice<SizeCost::Of>, 2> kSizes{
    {{"request_bytes", SizeCost::Of::kRequestBytes},
     {"response_bytes", SizeCost::Of::kResponseBytes}}};

// `size` is unchanged if the word is absent.
void ReadSize(FieldReader& reader, Fields& fields, Word word, uint64_t& size) {
  if (!fields.has(word)) return;
  const std::string_view text = reader.Text(fields, word);
  if (fields.reported(word)) return;
  const auto parsed = ParseSize(text);
  if (parsed.ok()) {
    size = *parsed;
  } else {
    reader.Report(
        fields, word,
        fmt::format("invalid {}: {}", TextOf(word), std::string(parsed.status().message())),
        "sizes are of bytes: 1KiB is 1024 of them");
  }
}

}  // namespace

std::optional<SizeCost> ReadSizeCost(FieldReader& reader, Fields& limit_fields,
                                     const DocumentNode& cost) {
  const auto refuse = [&](std::string message, std::string hint) {
    reader.Report(limit_fields, Word::kCost, std::move(message), std::move(hint));
    return std::nullopt;
  };
  if (cost.kind != NodeKind::kMapping) {
    return refuse(
        "cost is not a mapping",
        "cost: {of: response_bytes, per: 1KiB, reserve: 64KiB} counts sizes; a fixed cost "
        "belongs to the request");
  }
  Fields fields = reader.Read(cost, Context::kCost);
  SizeCost read;
  if (!fields.has(Word::kOf) && !fields.reported(Word::kOf))
    return refuse("cost has no 'of'", "add of: request_bytes or of: response_bytes");
  const std::string_view of = reader.Text(fields, Word::kOf);
  if (!fields.reported(Word::kOf)) {
    std::string hint;
    if (const auto found = ChoiceByName(kSizes, of, hint)) {
      read.of = *found;
    } else {
      reader.Report(fields, Word::kOf, fmt::format("invalid of '{}'", Shown(of)), std::move(hint));
    }
  }
  ReadSize(reader, fields, Word::kPer, read.per_bytes);
  read.reserve_bytes = read.per_bytes;
  ReadSize(reader, fields, Word::kReserve, read.reserve_bytes);
  if (fields.any_reported()) return std::nullopt;
  return read;
}

void CheckSizeCost(FieldReader& reader, Fields& limit_fields, const RuleLimit& limit) {
  const algorithm::LimitSpec& spec = limit.limit.spec();
  const auto refuse = [&](std::string message, std::string hint) {
    reader.Report(limit_fields, Word::kCost, std::move(message), std::move(hint));
  };
  switch (spec.algorithm) {
    case algorithm::Algorithm::kLeakyBucketQueue:
      return refuse("a queue cannot have a cost by size: it takes nothing back",
                    "leave out queue, or cost");
    case algorithm::Algorithm::kSlidingWindowLog:
      return refuse("sliding_window_log cannot have a cost by size: it takes nothing back exactly",
                    "sliding_window_counter can");
    default:
      break;
  }
  if (spec.count_denied) {
    return refuse("count_denied cannot have a cost by size: denied requests have no size",
                  "leave out count_denied, or cost");
  }
  if (limit.cost->reserve() > limit.limit.capacity() && !limit.limit.denies_all()) {
    refuse(fmt::format("the reserve of {} costs {}, and the limit is {}: no request would pass",
                       FormatSize(limit.cost->reserve_bytes), limit.cost->reserve(),
                       limit.limit.capacity()),
           "make reserve smaller, or per or the limit larger");
  }
}

}  // namespace headgate::rule
