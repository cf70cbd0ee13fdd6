// The common part of the routes that change rules: the queries, how a request says which version it
// expects, and how the answer says what the change did.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/handler.h"
#include "headgate/rule/editor.h"

namespace headgate::front::admin {

// The most rules that an answer names as different.
inline constexpr size_t kDifferencesMax = 1000;
// The number of changes in one answer of /v1/history: the default and the largest.
inline constexpr size_t kHistoryDefault = 50;
inline constexpr size_t kHistoryMax = 1000;

struct Query {
  bool dry_run = false;
  std::string document{};
  std::string key{};  // a key; it names the document with the key's limit
  std::string domain{};
  std::string rule{};  // its name, or its path if it has none
  std::string by{};    // an order
  size_t count = kHistoryDefault;
};

// Nothing if a parameter is not in `takes`, comes twice, or cannot have this value. `count` is the
// default of that parameter.
using Parameters = std::initializer_list<std::string_view>;
std::optional<Query> ReadQuery(std::string_view target, Parameters takes,
                               size_t count = kHistoryDefault);
inline constexpr std::string_view kDryRunQuery = "dry_run=true";
// `takes`: the query that the path accepts, for the hint.
void AnswerBadQuery(std::string_view takes, http::Response& response);

// The version that the sender expects. Nothing, after a refusal, if the fields do not say one.
std::optional<std::string> ExpectedVersion(const http::Request& request, http::Response& response);

rule::Author AuthorOf(const http::Request& request);

void AnswerStates(const rule::DocumentStates& states, http::Response& response);
void AnswerHistory(const std::vector<rule::PastChange>& changes, http::Response& response);
void AddETag(std::string_view version, http::Response& response);
void AnswerFailure(const absl::Status& status, http::Response& response);
void AnswerEdit(const rule::EditResult& result, rule::DryRun dry_run, http::Response& response);

}  // namespace headgate::front::admin
