// The answers of the admin API, which are JSON, as text for people. Foreign text in them cannot
// move a terminal's cursor.
//
// Each returns nothing if the answer is not JSON, or has other members than Headgate's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::app {

// GET /v1/documents, a line per document and problem.
std::optional<std::string> DocumentsText(std::string_view body);
// GET /v1/history, a line per change.
std::optional<std::string> HistoryText(std::string_view body);
// A change or its dry run: the lines that differ, and what that means for the rules.
struct ShownChange {
  bool changes = false;  // whether any line differs
  std::string text;
};
std::optional<ShownChange> ShowChange(std::string_view body);

}  // namespace headgate::app
