#include "headgate/access/password_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "absl/strings/escaping.h"
#include "headgate/base/check.h"
#include "headgate/wire/digest.h"

namespace headgate::access {
namespace {

constexpr uint64_t kMemoryMax = uint64_t{256} << 20;
constexpr uint32_t kPassesMax = 8;
constexpr size_t kSaltBytes = 16;
constexpr size_t kHashBytes = 32;

uint64_t MemoryOf(const PasswordHash& work) {
  return (uint64_t{128} * work.r << work.log_n) + uint64_t{128} * work.r * work.p;
}

// Empty if OpenSSL refuses, for instance because there is no memory.
std::string Compute(const PasswordHash& work, std::string_view password, size_t bytes) {
  std::string hash(bytes, '\0');
  const auto* const salt =
      static_cast<const unsigned char*>(static_cast<const void*>(work.salt.data()));
  auto* const out = static_cast<unsigned char*>(static_cast<void*>(hash.data()));
  // OpenSSL counts slightly more memory than the algorithm needs.
  const bool computed =
      EVP_PBE_scrypt(password.data(), password.size(), salt, work.salt.size(),
                     uint64_t{1} << work.log_n, work.r, work.p, 2 * kMemoryMax, out, bytes) == 1;
  return computed ? hash : std::string();
}

std::string Base64(std::string_view bytes) {
  std::string text = absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
  text.erase(std::find(text.begin(), text.end(), '='), text.end());
  return text;
}

// Removes `begin` and the number behind it.
bool TakeNumber(std::string_view& text, std::string_view begin, uint32_t& number) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool TakeBytes(std::string_view& text, std::string& bytes) {
  if (!text.starts_with('$')) return false;
  text.remove_prefix(1);
  const std::string_view word = text.substr(0, text.find('$'));
  text.remove_prefix(word.size());
  return absl::Base64Unescape(absl::string_view(word.data(), word.size()), &bytes);
}

std::optional<PasswordHash> Read(std::string_view text) {
  PasswordHash hash;
  if (!TakeNumber(text, "$scrypt$ln=", hash.log_n) || !TakeNumber(text, ",r=", hash.r) ||
      !TakeNumber(text, ",p=", hash.p) || !TakeBytes(text, hash.salt) ||
      !TakeBytes(text, hash.hash) || !text.empty()) {
    return std::nullopt;
  }
  return hash;
}

}  // namespace

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  auto* const out = static_cast<unsigned char*>(static_cast<void*>(bytes.data()));
  HEADGATE_CHECK(RAND_bytes(out, static_cast<int>(count)) == 1);
  return bytes;
}

bool HaveSameCost(const PasswordHash& a, const PasswordHash& b) {
  return a.log_n == b.log_n && a.r == b.r && a.p == b.p;
}

PasswordHash DefaultCost() { return {.log_n = 15, .r = 8, .p = 1, .salt = {}, .hash = {}}; }

PasswordHash HashOfNobody(const PasswordHash& cost) {
  PasswordHash nobody = cost;
  nobody.salt = RandomBytes(kSaltBytes);
  nobody.hash = RandomBytes(kHashBytes);
  return nobody;
}

std::string HashPassword(std::string_view password) {
  PasswordHash work = DefaultCost();
  work.salt = RandomBytes(kSaltBytes);
  const std::string hash = Compute(work, password, kHashBytes);
  HEADGATE_CHECK(!hash.empty());
  return fmt::format("$scrypt$ln={},r={},p={}${}${}", work.log_n, work.r, work.p, Base64(work.salt),
                     Base64(hash));
}

absl::StatusOr<PasswordHash> ParsePasswordHash(std::string_view text) {
  const std::optional<PasswordHash> parsed = Read(text);
  // The text is a secret: no message repeats it.
  if (!parsed || parsed->hash.size() < kHashBytes || parsed->hash.size() > 64)
    return absl::InvalidArgumentError("it is not a hash of `headgate hash-password`");
  if (parsed->log_n < 1 || parsed->log_n > 24 || parsed->r < 1 || parsed->r > 64 || parsed->p < 1 ||
      parsed->p > kPassesMax || MemoryOf(*parsed) > kMemoryMax) {
    return absl::InvalidArgumentError("the hash needs more than 256 MiB or eight passes");
  }
  return *parsed;
}

bool Matches(const PasswordHash& hash, std::string_view password) {
  const std::string computed = Compute(hash, password, hash.hash.size());
  return wire::EqualSecrets(computed, hash.hash);
}

}  // namespace headgate::access
