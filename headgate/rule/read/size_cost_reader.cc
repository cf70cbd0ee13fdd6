#include "headgate/rule/read/size_cost_reader.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/read/limit_choices.h"

namespace headgate::rule::read {
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

// Adds the items of a list of texts, or a single one.
template <typename Add>
void ReadStatuses(FieldReader& reader, Fields& fields, Word word, const Add& add) {
  const DocumentNode* const node = fields.value(word);
  if (node == nullptr) return;
  const DocumentNode* const one[] = {node};
  const std::span<const DocumentNode* const> items =
      node->kind == NodeKind::kSequence ? node->children : std::span(one);
  for (const DocumentNode* const item : items) {
    const absl::Status added = item->kind == NodeKind::kScalar
                                   ? add(item->text)
                                   : absl::InvalidArgumentError("an item is not a text");
    if (added.ok()) continue;
    reader.Report(item->mark,
                  fmt::format("invalid {}: {}", TextOf(word), std::string(added.message())),
                  "count: {status: [401, 403]} counts the requests that are answered so");
    return reader.Forget(fields, word);
  }
}

std::optional<SizeCost> ReadStatusCount(FieldReader& reader, Fields& limit_fields,
                                        const DocumentNode& count) {
  if (count.kind != NodeKind::kMapping) {
    reader.Report(limit_fields, Word::kCount, "count is not a mapping",
                  "count: {status: [401, 403]} counts the requests that are answered so");
    return std::nullopt;
  }
  Fields fields = reader.Read(count, Context::kCount);
  SizeCost read{.of = SizeCost::Of::kCountedAnswers};
  ReadStatuses(reader, fields, Word::kStatus,
               [&](std::string_view text) { return read.counted.AddHttp(text); });
  ReadStatuses(reader, fields, Word::kGrpcStatus,
               [&](std::string_view text) { return read.counted.AddGrpc(text); });
  if (fields.any_reported()) {
    reader.Forget(limit_fields, Word::kCount);
    return std::nullopt;
  }
  if (read.counted.empty()) {
    reader.Report(limit_fields, Word::kCount, "count names no status, so nothing would be counted",
                  "count: {status: [401, 403]} counts the requests that are answered so");
    return std::nullopt;
  }
  return read;
}

void CheckStatusCount(FieldReader& reader, Fields& limit_fields, const RuleLimit& limit) {
  using algorithm::Algorithm;
  const algorithm::LimitSpec& spec = limit.limit.spec();
  if (!IsWindow(spec.algorithm)) {
    return reader.Report(
        limit_fields, Word::kCount,
        fmt::format("{} cannot count by status: it does not give back all that it has taken",
                    algorithm::Name(spec.algorithm)),
        "algorithm: sliding_window_counter (the default with count) and fixed_window can");
  }
  if (spec.count_denied) {
    reader.Report(limit_fields, Word::kCount,
                  "count_denied cannot count by status: denied requests have no answer of the "
                  "service",
                  "leave out count_denied, or count");
  }
}

}  // namespace

std::optional<SizeCost> ReadLaterCost(FieldReader& reader, Fields& limit_fields) {
  const DocumentNode* const cost = limit_fields.value(Word::kCost);
  const DocumentNode* const count = limit_fields.value(Word::kCount);
  if (cost != nullptr && count != nullptr) {
    reader.Report(limit_fields, Word::kCount, "a limit cannot have both cost and count",
                  "write two limits under rate_limits, or leave out one of the words");
    return std::nullopt;
  }
  if (cost != nullptr) return ReadSizeCost(reader, limit_fields, *cost);
  return count != nullptr ? ReadStatusCount(reader, limit_fields, *count) : std::nullopt;
}

void CheckSizeCost(FieldReader& reader, Fields& limit_fields, const RuleLimit& limit) {
  if (!limit.limit.spec().block.empty()) {
    return reader.Report(limit_fields, Word::kBlock,
                         "block does not go with count, nor with a cost by size",
                         "requests in progress count for more than they may cost in the end, and a "
                         "denial because of them is no violation; block by a limit without them");
  }
  if (limit.cost->of == SizeCost::Of::kCountedAnswers)
    return CheckStatusCount(reader, limit_fields, limit);
  const algorithm::LimitSpec& spec = limit.limit.spec();
  const auto refuse = [&](std::string message, std::string hint) {
    reader.Report(limit_fields, Word::kCost, std::move(message), std::move(hint));
  };
  const algorithm::Traits& traits = algorithm::TraitsOf(spec.algorithm);
  if (traits.queues) {
    return refuse("a queue cannot have a cost by size: it takes nothing back",
                  "leave out queue, or cost");
  }
  if (!traits.refunds_exactly) {
    return refuse(
        fmt::format("{} cannot have a cost by size: it takes nothing back exactly", traits.word),
        "sliding_window_counter can");
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

}  // namespace headgate::rule::read
