#include "headgate/share/client_names.h"

#include <algorithm>

#include "headgate/base/hash.h"

namespace headgate::share {
namespace {

constexpr std::string_view kHashPrefix = "hash-";
constexpr std::string_view kHexDigits = "0123456789abcdef";

char* WriteHex(uint64_t value, char* to) {
  for (int shift = 60; shift >= 0; shift -= 4) *to++ = kHexDigits[(value >> shift) & 15];
  return to;
}

}  // namespace

ClientNames::ClientNames(const ShareOptions& options) : options_(options) {
  Buffer buffer;
  for (const ClientWeight& entry : options_.weights)
    weights_.emplace(NameOf(entry.client, buffer), entry.weight);
}

std::string_view ClientNames::NameOf(std::string_view client_id, Buffer& buffer) const {
  if (client_id.empty() && options_.without_id == WithoutId::kShareOne) return options_.anonymous;
  if (client_id.size() <= options_.client_id_bytes_max) return client_id;
  const base::Hash128 hash = base::HashBytes(options_.secret, base::KeyKind::kRaw, client_id);
  char* end = std::copy(kHashPrefix.begin(), kHashPrefix.end(), buffer.data());
  end = WriteHex(hash.low, WriteHex(hash.high, end));
  return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

uint32_t ClientNames::WeightOf(std::string_view name) const {
  if (weights_.empty()) return 1;
  const auto found = weights_.find(absl::string_view(name.data(), name.size()));
  return found == weights_.end() ? 1 : found->second;
}

}  // namespace headgate::share
