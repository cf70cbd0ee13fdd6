#include "headgate/mapping/tokens.h"

#include <algorithm>
#include <functional>

#include "headgate/base/text.h"

namespace headgate::mapping {
namespace {

constexpr std::string_view kBearer = "Bearer";
constexpr std::string_view kSpaces = " \t";

// Whether credentials of another scheme cannot hold a token, which has two dots. Some applications
// accept the text behind any scheme as a token.
bool IsOtherScheme(std::string_view value) {
  const size_t end = value.find_first_of(kSpaces);
  return end != value.npos && std::count(value.begin(), value.end(), '.') < 2;
}

// The token in a value of a header or cookie; empty if there is none. Applications skip any number
// of spaces behind the scheme.
std::string_view TokenIn(std::string_view value, bool of_header) {
  value = base::Trimmed(value);
  std::string_view rest = value.substr(std::min(kBearer.size(), value.size()));
  const bool is_bearer = base::EqualsIgnoreCase(value.substr(0, kBearer.size()), kBearer) &&
                         (rest.empty() || kSpaces.find(rest.front()) != kSpaces.npos);
  if (is_bearer) return base::Trimmed(rest);
  return of_header && IsOtherScheme(value) ? std::string_view() : value;
}

// The token is a part of the request or of `decoded`.
ClaimLookup FindToken(const DescribedRequest& request, const TokenIssuer& issuer,
                      std::string& decoded, std::string_view& token) {
  const bool of_header = issuer.cookie.empty();
  std::string_view value;
  const wire::Lookup lookup = of_header ? request.FindHeader(issuer.header, value)
                                        : request.FindCookie(issuer.cookie, decoded, value);
  if (lookup == wire::Lookup::kAbsent) return ClaimLookup::kAbsent;
  if (lookup != wire::Lookup::kFound) return ClaimLookup::kAmbiguous;
  token = TokenIn(value, of_header);
  return token.empty() ? ClaimLookup::kAbsent : ClaimLookup::kFound;
}

bool AreAtOnePlace(const TokenIssuer& a, const TokenIssuer& b) {
  if (!a.cookie.empty() || !b.cookie.empty()) return a.cookie == b.cookie;
  return base::EqualsIgnoreCase(a.header, b.header);
}

}  // namespace

void TokenReader::SetIssuers(std::span<const TokenIssuer> issuers) {
  issuers_ = issuers;
  current_.clear();
  kept_.clear();
  kept_bytes_ = 0;
  next_forgotten_ = 0;
  wrong_.clear();
}

void TokenReader::Begin() {
  current_.clear();
  refusal_ = jwt::Refusal::kNone;
  for (; kept_.size() > kKeptMax; kept_.pop_back()) Forget(kept_.back());
  // No slot is in use. Slots are freed in turn, so large tokens are not forgotten first.
  for (; kept_bytes_ > kKeptBytesMax; next_forgotten_ = (next_forgotten_ + 1) % kKeptMax)
    Forget(kept_[next_forgotten_]);
}

void TokenReader::Forget(std::unique_ptr<Kept>& slot) {
  if (slot != nullptr) kept_bytes_ -= slot->bytes();
  slot.reset();
}

ClaimLookup TokenReader::Claim(uint32_t issuer, std::span<const std::string> names,
                               const DescribedRequest& request, int64_t now_s, std::string& text) {
  const Current current = TokenOf(issuer, request, now_s);
  if (current.token == nullptr && current.refusal != jwt::Refusal::kNone)
    return WithoutToken(current, request, now_s);
  if (current.token == nullptr) return current.lookup;
  const std::vector<std::string_view> path(names.begin(), names.end());
  const auto member = current.token->claims.Find(path);
  if (!member) return ClaimLookup::kAbsent;
  using Kind = jwt::JsonMembers::Kind;
  if (member->kind != Kind::kString && member->kind != Kind::kNumber &&
      member->kind != Kind::kBool) {
    return ClaimLookup::kAbsent;
  }
  text.append(member->text);
  return ClaimLookup::kFound;
}

ClaimLookup TokenReader::WithoutToken(const Current& current, const DescribedRequest& request,
                                      int64_t now_s) {
  ClaimLookup lookup = current.lookup;
  jwt::Refusal refusal = current.refusal;
  // An expired token has a valid signature of this issuer, so the others are not tried.
  for (uint32_t other = 0; other < issuers_.size() && lookup != ClaimLookup::kExpired; ++other) {
    if (other == current.issuer || !AreAtOnePlace(issuers_[current.issuer], issuers_[other]))
      continue;
    const Current of_other = TokenOf(other, request, now_s);
    if (of_other.lookup == ClaimLookup::kFound) return ClaimLookup::kAbsent;
    if (of_other.lookup != ClaimLookup::kExpired) continue;
    lookup = ClaimLookup::kExpired;
    refusal = of_other.refusal;
  }
  if (refusal_ == jwt::Refusal::kNone) refusal_ = refusal;
  return lookup;
}

TokenReader::Current TokenReader::TokenOf(uint32_t issuer, const DescribedRequest& request,
                                          int64_t now_s) {
  for (const Current& current : current_) {
    if (current.issuer == issuer) return current;
  }
  std::string_view text;
  cookie_.clear();
  Current current{.issuer = issuer, .lookup = FindToken(request, issuers_[issuer], cookie_, text)};
  if (current.lookup == ClaimLookup::kFound) Verify(text, now_s, current);
  return current_.emplace_back(current);
}

void TokenReader::Verify(std::string_view token, int64_t now_s, Current& current) {
  if (kept_.empty()) kept_.resize(kKeptMax);
  const uint32_t issuer = current.issuer;
  std::unique_ptr<Kept>& slot = kept_[(std::hash<std::string_view>()(token) + issuer) % kKeptMax];
  if (slot != nullptr && slot->issuer == issuer && slot->token == token &&
      now_s < slot->verified.valid_until_s) {
    current.token = &slot->verified;
    return;
  }
  if (wrong_.empty()) wrong_.resize(kWrongMax);
  const Wrong wrong{.token = base::HashBytes(wrong_secret_, base::KeyKind::kRaw, token),
                    .issuer = issuer};
  Wrong& known_wrong = wrong_[wrong.token.low % kWrongMax];
  auto fresh = std::make_unique<Kept>(Kept{.token = std::string(token), .issuer = issuer});
  current.refusal = known_wrong == wrong
                        ? jwt::Refusal::kSignature
                        : issuers_[issuer].verifier->Verify(token, now_s, fresh->verified);
  if (current.refusal == jwt::Refusal::kSignature) known_wrong = wrong;
  if (current.refusal != jwt::Refusal::kNone) {
    current.lookup =
        current.refusal == jwt::Refusal::kExpired ? ClaimLookup::kExpired : ClaimLookup::kNotValid;
    return;
  }
  // If another token of this request uses the slot, both are needed until the next request.
  const bool in_use = std::any_of(current_.begin(), current_.end(), [&](const Current& other) {
    return slot != nullptr && other.token == &slot->verified;
  });
  std::unique_ptr<Kept>& place = in_use ? kept_.emplace_back() : slot;
  Forget(place);
  kept_bytes_ += fresh->bytes();
  place = std::move(fresh);
  current.token = &place->verified;
}

}  // namespace headgate::mapping
