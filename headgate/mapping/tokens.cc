#include "headgate/mapping/tokens.h"

#include <algorithm>
#include <functional>

#include "headgate/base/text.h"

namespace headgate::mapping {
namespace {

constexpr std::string_view kBearer = "Bearer ";

wire::Lookup FindToken(const RequestHead& request, const TokenIssuer& issuer,
                       std::string_view& token) {
  const wire::Lookup lookup = issuer.cookie.empty() ? request.FindHeader(issuer.header, token)
                                                    : request.FindCookie(issuer.cookie, token);
  if (lookup != wire::Lookup::kFound) return lookup;
  if (base::EqualsIgnoreCase(token.substr(0, kBearer.size()), kBearer))
    token.remove_prefix(kBearer.size());
  return lookup;
}

}  // namespace

void TokenReader::SetIssuers(std::span<const TokenIssuer> issuers) {
  issuers_ = issuers;
  current_.clear();
  kept_.clear();
}

void TokenReader::Begin() {
  current_.clear();
  if (kept_.size() > kKeptMax) kept_.resize(kKeptMax);
}

wire::Lookup TokenReader::Claim(uint32_t issuer, std::span<const std::string> names,
                                const RequestHead& request, int64_t now_s, std::string& text) {
  const Current current = TokenOf(issuer, request, now_s);
  if (current.token == nullptr) return current.lookup;
  const std::vector<std::string_view> path(names.begin(), names.end());
  const jwt::JsonMembers::Member* const member = current.token->claims.Find(path);
  if (member == nullptr) return wire::Lookup::kAbsent;
  using Kind = jwt::JsonMembers::Kind;
  if (member->kind != Kind::kString && member->kind != Kind::kNumber &&
      member->kind != Kind::kBool) {
    return wire::Lookup::kAbsent;
  }
  text.append(member->text);
  return wire::Lookup::kFound;
}

TokenReader::Current TokenReader::TokenOf(uint32_t issuer, const RequestHead& request,
                                          int64_t now_s) {
  for (const Current& current : current_) {
    if (current.issuer == issuer) return current;
  }
  std::string_view text;
  Current current{.issuer = issuer, .lookup = FindToken(request, issuers_[issuer], text)};
  if (current.lookup == wire::Lookup::kFound) {
    current.token = text.empty() ? nullptr : Verified(issuer, text, now_s);
    if (current.token == nullptr) current.lookup = wire::Lookup::kAbsent;
  }
  return current_.emplace_back(current);
}

const jwt::Verifier::Token* TokenReader::Verified(uint32_t issuer, std::string_view token,
                                                  int64_t now_s) {
  if (kept_.empty()) kept_.resize(kKeptMax);
  std::unique_ptr<Kept>& slot = kept_[(std::hash<std::string_view>()(token) + issuer) % kKeptMax];
  if (slot != nullptr && slot->issuer == issuer && slot->token == token &&
      now_s < slot->verified.valid_until_s) {
    return &slot->verified;
  }
  auto fresh = std::make_unique<Kept>(Kept{.token = std::string(token), .issuer = issuer});
  if (!issuers_[issuer].verifier->Verify(token, now_s, fresh->verified).ok()) return nullptr;
  // If another token of this request uses the slot, both are needed until the next request.
  const bool in_use = std::any_of(current_.begin(), current_.end(), [&](const Current& current) {
    return slot != nullptr && current.token == &slot->verified;
  });
  std::unique_ptr<Kept>& place = in_use ? kept_.emplace_back() : slot;
  place = std::move(fresh);
  return &place->verified;
}

}  // namespace headgate::mapping
