// Hints for mistakes that people make in mapping files: words of other limiters, and texts that
// mean something else. Each function returns an empty text if it knows nothing better than its
// caller.
#pragma once

#include <string>
#include <string_view>

namespace headgate::mapping {

// For a word that no mapping file has.
std::string_view HintForWord(std::string_view word);

// For a text that is not a network.
std::string HintForNetwork(std::string_view text);

// Whether the text begins or ends with a typographic quote, which YAML takes for a letter.
bool HasTypographicQuotes(std::string_view text);

}  // namespace headgate::mapping
