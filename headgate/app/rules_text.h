// The answers of the admin API as text for people. Foreign text in them cannot move a terminal's
// cursor.
//
// Each throws nlohmann::json::exception if the answer has other members than Headgate's.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headgate::app {

// GET /v1/documents, a line per document and problem.
std::string DocumentsText(const nlohmann::json& answer);
// GET /v1/history, a line per change.
std::string HistoryText(const nlohmann::json& answer);
// A change or its dry run: the lines that differ, and what that means for the rules.
std::string ChangeText(const nlohmann::json& answer);

}  // namespace headgate::app
