#include "headgate/store/cas/envelope.h"

#include <gtest/gtest.h>

#include "headgate/store/bucket_codec.h"
#include "headgate/store/cas/removal.h"

namespace headgate::store::cas {
namespace envelope_test {

using namespace std::chrono_literals;

Envelope Example() {
  Envelope envelope{.generation = 0x0102030405060708,
                    .expires_at = base::Instant::FromNanos(0x1112131415161718),
                    .writes = {{.writer = 0x21, .number = 3}, {.writer = 0x22, .number = 4}},
                    .bucket = {}};
  const auto limit = *algorithm::Limit::Make(
      {.algorithm = algorithm::Algorithm::kTokenBucket, .requests = 60, .period = 60s});
  AppendBucket(
      {.limit = limit, .state = {.edge = 0x31, .seen = base::Instant::FromNanos(0x32), .count = 0}},
      envelope.bucket);
  return envelope;
}

std::string BytesOf(const Envelope& envelope) {
  std::string bytes;
  AppendEnvelope(envelope, bytes);
  return bytes;
}

std::string Unhex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ' || c == '\n') continue;
    digits += c;
    if (digits.size() == 2) bytes += static_cast<char>(std::stoi(digits, nullptr, 16));
    if (digits.size() == 2) digits.clear();
  }
  return bytes;
}

// The format of values that are stored somewhere: it may only change together with the version. The
// parts come from the description in the header, the checksum from another implementation.
TEST(Envelope, HasTheseBytes) {
  const std::string golden = Unhex(
      "01"
      "0102030405060708"
      "1112131415161718"
      "02"
      "0000000000000021 0000000000000003"
      "0000000000000022 0000000000000004"
      "01 00 3c 80b09dc2df01 0000000000000031 00000000 0000000000000032"
      "1859034e");
  EXPECT_EQ(BytesOf(Example()), golden);
}

TEST(Envelope, HasTheFenceOfALock) {
  Envelope fenced = Example();
  fenced.fence = 0x0203040506070809;
  std::string expected = BytesOf(Example());
  expected = "\x02" + expected.substr(1, 16) + Unhex("0203040506070809") +
             expected.substr(17, expected.size() - 17 - 4);
  AppendChecksum(expected);
  EXPECT_EQ(BytesOf(fenced), expected);
  EXPECT_EQ(ParseEnvelope(expected), fenced);
}

TEST(Envelope, HasTheChecksumOfRfc3720) {
  // RFC 3720, B.4: 32 bytes of zeroes, and of ones.
  std::string bytes(32, '\0');
  AppendChecksum(bytes);
  EXPECT_EQ(bytes.substr(32), Unhex("8a9136aa"));
  bytes.assign(32, '\xff');
  AppendChecksum(bytes);
  EXPECT_EQ(bytes.substr(32), Unhex("62a8ab43"));
}

TEST(Envelope, IsReadAsItWasWritten) {
  EXPECT_EQ(ParseEnvelope(BytesOf(Example())), Example());
  EXPECT_EQ(ParseEnvelope(BytesOf({})), Envelope{});
  Envelope full = Example();
  full.writes.clear();
  for (uint64_t i = 0; i < kWritersMax; ++i) full.writes.push_back({.writer = i, .number = ~i});
  EXPECT_EQ(ParseEnvelope(BytesOf(full)), full);
}

TEST(Envelope, NoDamagedByteIsAccepted) {
  const std::string bytes = BytesOf(Example());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_EQ(ParseEnvelope(damaged), std::nullopt) << i;
    }
    EXPECT_EQ(ParseEnvelope(std::string_view(bytes).substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(ParseEnvelope(bytes + '\0'), std::nullopt);
}

std::string WithChecksum(std::string bytes) {
  AppendChecksum(bytes);
  return bytes;
}

TEST(Envelope, WhatCannotBeIsNotAcceptedWithAGoodChecksumEither) {
  const std::string bytes = BytesOf(Example());
  const std::string body = bytes.substr(0, bytes.size() - 4);
  EXPECT_TRUE(ParseEnvelope(WithChecksum(body)).has_value()) << "the premise";
  std::string other = body;
  other[0] = 3;
  EXPECT_EQ(ParseEnvelope(WithChecksum(other)), std::nullopt) << "another version";
  other = body;
  other[0] = 2;
  other.insert(17, 8, '\0');
  EXPECT_EQ(ParseEnvelope(WithChecksum(other)), std::nullopt) << "a fence that no lock has";
  other = body;
  other[9] = '\xff';
  EXPECT_EQ(ParseEnvelope(WithChecksum(other)), std::nullopt) << "a time that cannot be";
  other = body;
  other[17] = static_cast<char>(kWritersMax + 1);
  EXPECT_EQ(ParseEnvelope(WithChecksum(other + std::string(16 * kWritersMax, 'x'))), std::nullopt)
      << "too many writes";
  other = body;
  other[18 + 7] = other[18 + 16 + 7];
  EXPECT_EQ(ParseEnvelope(WithChecksum(other)), std::nullopt) << "two writes of one writer";
  EXPECT_EQ(ParseEnvelope(WithChecksum(body.substr(0, 40))), std::nullopt) << "half a write";
  EXPECT_EQ(ParseEnvelope(WithChecksum("")), std::nullopt);
}

TEST(Envelope, MayBeRemovedOnlyLongAfterItWasNeeded) {
  const Envelope envelope{.expires_at = base::Instant::FromNanos(1'000'000'000'000)};
  EXPECT_FALSE(MayRemove(envelope, envelope.expires_at + kRemovalGrace - base::Duration(1)));
  EXPECT_TRUE(MayRemove(envelope, envelope.expires_at + kRemovalGrace));
  EXPECT_GT(kRemovalGrace, 10 * kVersionAgeMax);
}

}  // namespace envelope_test
}  // namespace headgate::store::cas
