#include "headgate/limiter/bucket_name.h"

#include <array>
#include <charconv>

#include "headgate/base/text.h"
#include "headgate/rule/rule_names.h"

namespace headgate::limiter {
namespace {

// Printable ASCII without the characters that have a meaning in a name.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x21; c < 0x7f; ++c) plain[c] = true;
  for (const char c : {'%', '{', '}', '|', '=', '#'}) plain[static_cast<unsigned char>(c)] = false;
  return plain;
}();

void AppendEncoded(std::string_view text, std::string& out) {
  while (!text.empty()) {
    // Copies runs of unescaped characters at once: nearly always the whole text.
    size_t plain = 0;
    while (plain < text.size() && kPlain[static_cast<unsigned char>(text[plain])]) ++plain;
    out.append(text.substr(0, plain));
    if (plain == text.size()) return;
    const auto byte = static_cast<unsigned char>(text[plain]);
    base::AppendHex(byte, out += '%');
    text.remove_prefix(plain + 1);
  }
}

constexpr size_t kWhole = std::string_view::npos;

// Appends at most the first `text_max` bytes of each text.
void AppendEntry(const rule::Entry& entry, size_t text_max, std::string& out) {
  out.push_back('|');
  AppendEncoded(entry.key.substr(0, text_max), out);
  out.push_back('=');
  AppendEncoded(entry.value.substr(0, text_max), out);
}

void AppendStep(const rule::Entry& entry, const rule::MatchStep& step, size_t text_max,
                std::string& out) {
  if (step.shared_pattern == nullptr) return AppendEntry(entry, text_max, out);
  // The pattern stands for the entry, with key and value in one; a plain entry contains a '='.
  out.push_back('|');
  AppendEncoded(std::string_view(*step.shared_pattern).substr(0, text_max), out);
}

void AppendMatched(std::string_view domain, std::span<const rule::Entry> entries,
                   const rule::Match& match, std::string& out) {
  AppendEncoded(domain, out);
  for (uint32_t i = 0; i < match.step_count; ++i)
    AppendStep(entries[i], match.steps[i], kWhole, out);
}

// Ends the name that began at `begin`, or replaces it by its hash.
void Finish(const BucketNaming& naming, size_t begin, std::string& out) {
  out.push_back('}');
  if (!naming.hashed) return;
  const base::Hash128 hash =
      base::HashBytes(naming.secret, base::KeyKind::kRaw, std::string_view(out).substr(begin));
  out.resize(begin);
  out.append("hg:{h|");
  for (const uint64_t half : {hash.high, hash.low}) {
    for (int shift = 60; shift >= 0; shift -= 4)
      out.push_back(base::kHexDigits[half >> shift & 15]);
  }
  out.push_back('}');
}

}  // namespace

void AppendRuleBucket(const BucketNaming& naming, std::string_view domain,
                      std::span<const rule::Entry> entries, const rule::Match& match,
                      size_t limit_index, std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{r|");
  AppendMatched(domain, entries, match, out);
  char digits[20];
  out.push_back('#');
  out.append(digits, std::to_chars(digits, digits + sizeof digits, limit_index).ptr);
  Finish(naming, begin, out);
}

void AppendPermits(const BucketNaming& naming, std::string_view domain,
                   std::span<const rule::Entry> entries, const rule::Match& match,
                   std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{p|");
  AppendMatched(domain, entries, match, out);
  Finish(naming, begin, out);
}

void AppendOverrideBucket(const BucketNaming& naming, std::string_view domain,
                          std::span<const rule::Entry> entries, rule::Unit unit, std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{o|");
  AppendEncoded(domain, out);
  for (const rule::Entry& entry : entries) AppendEntry(entry, kWhole, out);
  out.append("#").append(rule::Name(unit));
  Finish(naming, begin, out);
}

void AppendOnceBucket(const BucketNaming& naming, std::string_view domain, std::string_view id,
                      std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{i|");
  AppendEncoded(domain, out);
  out.push_back('|');
  AppendEncoded(id, out);
  Finish(naming, begin, out);
}

void AppendThrottleBucket(const BucketNaming& naming, std::string_view client_key,
                          std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{t|");
  AppendEncoded(client_key, out);
  Finish(naming, begin, out);
}

void AppendCounter(const BucketNaming& naming, std::string_view client_key, std::string& out) {
  const size_t begin = out.size();
  out.append("hg:{c|");
  AppendEncoded(client_key, out);
  Finish(naming, begin, out);
}

void AppendShortKey(std::string_view domain, std::span<const rule::Entry> entries,
                    const rule::Match& match, size_t bytes_max, std::string& out) {
  constexpr std::string_view kCut = "…";
  const size_t begin = out.size();
  // One byte more of a text than fits, so that what is too long is seen.
  AppendEncoded(domain.substr(0, bytes_max + 1), out);
  for (uint32_t i = 0; i < match.step_count && out.size() - begin <= bytes_max; ++i)
    AppendStep(entries[i], match.steps[i], bytes_max + 1, out);
  if (out.size() - begin <= bytes_max) return;
  out.resize(begin + bytes_max - kCut.size());
  // Not within %xx.
  const size_t escape = out.rfind('%');
  if (escape != std::string::npos && escape >= begin && escape + 3 > out.size()) out.resize(escape);
  out.append(kCut);
}

}  // namespace headgate::limiter
