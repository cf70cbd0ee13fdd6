#include "headgate/store/bucket_name.h"

#include <array>

namespace headgate::store {
namespace {

constexpr std::string_view kBegin = "hg:{";

constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = 0x21; c < 0x7f; ++c) plain[c] = true;
  for (const char c : {'{', '}', '%', '|', '=', '#'}) plain[static_cast<size_t>(c)] = false;
  return plain;
}();

void AppendEncoded(std::string_view part, std::string& out) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain[byte]) {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
}

}  // namespace

BucketName::BucketName(std::string& out, std::string_view domain) : out_(out) {
  out_.assign(kBegin);
  AppendEncoded(domain, out_);
}

std::string_view BucketName::OfThrottle(std::string_view key, std::string& out) {
  out.assign(kBegin).append("#throttle|");
  AppendEncoded(key, out);
  out.push_back('}');
  return out;
}

void BucketName::AddEntry(std::string_view key, std::string_view value) {
  out_.push_back('|');
  AppendEncoded(key, out_);
  out_.push_back('=');
  AppendEncoded(value, out_);
}

void BucketName::AddPattern(std::string_view pattern) {
  out_.push_back('|');
  AppendEncoded(pattern, out_);
}

std::string_view BucketName::OfLimit(uint32_t limit_index) {
  if (limit_index > 0) out_.append("#").append(std::to_string(limit_index));
  out_.push_back('}');
  return out_;
}

std::string_view BucketName::OfOverride(std::string_view unit) {
  out_.append("#").append(unit);
  out_.push_back('}');
  return out_;
}

}  // namespace headgate::store
