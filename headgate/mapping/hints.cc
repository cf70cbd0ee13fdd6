#include "headgate/mapping/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/ip_address.h"
#include "headgate/base/text.h"

namespace headgate::mapping {
namespace {

using std::string_view;

constexpr string_view kAddress = "the client's address is client_address: true";
constexpr string_view kNotFetched =
    "keys are not fetched: save the set that the issuer publishes in a file, jwks_file: keys.json";
constexpr string_view kOrigins =
    "origins whose pages may read refusals are cors_origins: [https://app.example.com]";
constexpr string_view kQuery = "a parameter of the query is query: NAME";

struct WordHint {
  string_view word;
  string_view hint;
};
constexpr std::array<WordHint, 30> kOtherWords = {{
    {"ip", kAddress},
    {"address", kAddress},
    {"client_ip", kAddress},
    {"remote_ip", kAddress},
    {"source_ip", kAddress},
    {"real_ip", kAddress},
    {"ip_address", kAddress},
    {"remote_addr", kAddress},
    {"remote_address", kAddress},
    {"jwks", kNotFetched},
    {"jwks_uri", kNotFetched},
    {"jwks_url", kNotFetched},
    {"secret", "a secret stands in a file: secret_file: PATH"},
    {"param", kQuery},
    {"parameter", kQuery},
    {"query_param", kQuery},
    {"query_parameter", kQuery},
    {"uri", "the path is path: true"},
    {"url", "the path is path: true"},
    {"request_path", "the path is path: true"},
    {"user_agent", "any header is header: NAME, for example header: User-Agent"},
    {"cors", kOrigins},
    {"allowed_origins", kOrigins},
    {"allow_origins", kOrigins},
    {"api_key", "an API key is a header: header: X-API-Key"},
    {"authorization", "the token in Authorization is bearer: true"},
    {"token", "the token in Authorization is bearer: true, and its claim is claim: NAME"},
    {"user", "a user is a claim of a token, claim: sub, or a header of the proxy, header: NAME"},
    {"rate_limit", "limits stand in the files of rules, not here"},
    {"limit", "limits stand in the files of rules, not here"},
}};

constexpr std::array<string_view, 6> kTypographicQuotes = {"\u201c", "\u201d", "\u2018",
                                                           "\u2019", "\u201e", "\u00ab"};

}  // namespace

std::string_view HintForWord(string_view word) {
  if (word.find(':') != word.npos) return "a space is missing behind the colon";
  const auto found = std::find_if(kOtherWords.begin(), kOtherWords.end(),
                                  [&](const WordHint& known) { return known.word == word; });
  return found == kOtherWords.end() ? string_view() : found->hint;
}

std::string HintForNetwork(string_view text) {
  if (text == "*") return "name the networks of your proxies; 0.0.0.0/0 stands for all of IPv4";
  const size_t slash = text.find('/');
  const auto address = base::ParseIpAddress(text.substr(0, slash));
  if (address && slash != text.npos) {
    const string_view digits = text.substr(slash + 1);
    int bits = 0;
    for (const char c : digits)
      bits = base::IsDigit(c) && bits < 1000 ? bits * 10 + (c - '0') : 1000;
    bits += address->is_v4() ? 96 : 0;
    if (digits.empty() || bits > 128) return "";
    std::string network;
    base::AppendIpNetwork(base::NetworkOf(*address, static_cast<uint8_t>(bits)), network);
    return fmt::format("the network of this address is {}; the address alone is {}", network,
                       text.substr(0, slash));
  }
  if (!text.empty() && text.find(':') == text.npos &&
      std::any_of(text.begin(), text.end(), base::IsLetter))
    return "names are not resolved here; write the address: localhost is 127.0.0.1";
  return "";
}

bool HasTypographicQuotes(string_view text) {
  return std::any_of(kTypographicQuotes.begin(), kTypographicQuotes.end(), [&](string_view quote) {
    return text.starts_with(quote) || text.ends_with(quote);
  });
}

}  // namespace headgate::mapping
