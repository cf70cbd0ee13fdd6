#include "headgate/rule/read/given_limit_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/text.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::read {
namespace {

constexpr std::string_view kPlansHint =
    "plans: {free: 10, gold: 500} names a plan's requests per period";

// Reads one plan; absent if it has a problem, which is reported.
std::optional<GivenLimits::Plan> ReadPlan(FieldReader& reader, const DocumentNode& name,
                                          const DocumentNode& number, const RuleLimit& own,
                                          const std::optional<uint32_t>& max) {
  const auto refuse = [&](const DocumentNode& node, std::string message) {
    reader.Report(node.mark, std::move(message), std::string(kPlansHint));
    return std::nullopt;
  };
  if (name.kind != NodeKind::kScalar || name.text.empty())
    return refuse(name, "the name of a plan is a text");
  const Scalar scalar = number.kind == NodeKind::kScalar ? Resolve(number) : Scalar{};
  const bool is_number = number.kind == NodeKind::kScalar && scalar.type == ScalarType::kInt &&
                         scalar.number >= 0 && scalar.number <= UINT32_MAX;
  if (!is_number) {
    return refuse(number,
                  fmt::format("the plan {} has no whole number of requests", Quote(name.text)));
  }
  const auto requests = static_cast<uint64_t>(scalar.number);
  if (max && requests > *max) {
    return refuse(number, fmt::format("the plan {} has {} requests, and max is {}",
                                      Quote(name.text), requests, *max));
  }
  auto limit = algorithm::Limit::Make(WithRequests(own.limit.spec(), requests));
  if (!limit.ok()) {
    return refuse(number, fmt::format("the plan {} cannot be: {}", Quote(name.text),
                                      std::string(limit.status().message())));
  }
  return GivenLimits::Plan{.name = std::string(name.text), .limit = *limit};
}

void ReadPlans(FieldReader& reader, Fields& limit_fields, const RuleLimit& own,
               GivenLimits& given) {
  const DocumentNode* const plans = limit_fields.value(Word::kPlans);
  if (plans == nullptr) return;
  if (plans->kind != NodeKind::kMapping || plans->children.empty())
    return reader.Report(limit_fields, Word::kPlans, "plans names no plans",
                         std::string(kPlansHint));
  if (plans->children.size() / 2 > GivenLimits::kPlansMax)
    return reader.Report(limit_fields, Word::kPlans,
                         fmt::format("there are more than {} plans", GivenLimits::kPlansMax),
                         "give the numbers themselves, bounded by max");
  for (size_t i = 0; i + 1 < plans->children.size(); i += 2) {
    auto plan = ReadPlan(reader, *plans->children[i], *plans->children[i + 1], own, given.max);
    if (!plan) return FieldReader::Forget(limit_fields, Word::kPlans);
    given.plans.push_back(*std::move(plan));
  }
  const auto by_name = [](const GivenLimits::Plan& a, const GivenLimits::Plan& b) {
    return a.name < b.name;
  };
  std::sort(given.plans.begin(), given.plans.end(), by_name);
  const auto twice = std::adjacent_find(
      given.plans.begin(), given.plans.end(),
      [](const GivenLimits::Plan& a, const GivenLimits::Plan& b) { return a.name == b.name; });
  if (twice != given.plans.end())
    reader.Report(limit_fields, Word::kPlans,
                  fmt::format("the plan {} is there twice", Quote(twice->name)),
                  "leave out one of them");
}

}  // namespace

void ReadGivenLimits(FieldReader& reader, Fields& limit_fields, RuleLimit& limit) {
  if (!limit_fields.has(Word::kMax) && !limit_fields.has(Word::kPlans)) return;
  const auto refuse = [&](Word word, std::string message, std::string hint) {
    reader.Report(limit_fields, word, std::move(message), std::move(hint));
  };
  GivenLimits given;
  const algorithm::LimitSpec& own = limit.limit.spec();
  if (limit_fields.has(Word::kMax)) {
    given.max = reader.Unsigned32(limit_fields, Word::kMax);
    if (limit_fields.reported(Word::kMax)) return;
    if (*given.max < own.requests) {
      return refuse(
          Word::kMax,
          fmt::format("max is {}, less than the limit's own {} requests", *given.max, own.requests),
          "the limit's own number is for requests that bring none; max is the most "
          "that a request can bring");
    }
    if (const auto most = algorithm::Limit::Make(WithRequests(own, *given.max)); !most.ok()) {
      return refuse(Word::kMax,
                    fmt::format("a limit of {} cannot be: {}", *given.max,
                                std::string(most.status().message())),
                    "make max smaller");
    }
  }
  ReadPlans(reader, limit_fields, limit, given);
  if (limit_fields.reported(Word::kPlans)) return;
  const auto lower = std::find_if(given.plans.begin(), given.plans.end(), [&](const auto& plan) {
    return plan.limit.spec().requests < own.requests;
  });
  if (lower != given.plans.end()) {
    reader.Warn(limit_fields.mark(Word::kPlans),
                fmt::format("requests without a plan have a higher limit than those of plan {}",
                            Quote(lower->name)),
                "make requests_per_unit the number of the lowest plan");
  }
  limit.given = std::make_shared<const GivenLimits>(std::move(given));
}

}  // namespace headgate::rule::read
