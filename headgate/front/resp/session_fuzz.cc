// Any bytes cause no crash and no incomplete reply, and give the same replies in any pieces, but
// for the random ids of permits. The first byte chooses the pieces, and whether there is a
// credential.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/front/resp/conversation.h"
#include "headgate/rule/read/load.h"
#include "headgate/wire/resp_reader.h"

namespace {

using headgate::front::resp::Conversation;
using headgate::front::resp::World;
using headgate::wire::RespReader;

// A domain `d` whose rule `k` allows 5 per second, and whose rule `p` 2 in flight.
void AddRules(World& world) {
  static const headgate::rule::read::LoadResult kLoaded = [] {
    const headgate::rule::read::RuleFile file{
        .name = "rules.yaml",
        .text =
            "domain: d\n"
            "descriptors:\n"
            "- key: k\n"
            "  rate_limit: {algorithm: token_bucket, unit: second, requests_per_unit: 5}\n"
            "- key: p\n"
            "  rate_limit: {algorithm: concurrency, requests: 2, ttl: 10s}\n"};
    return headgate::rule::read::LoadRules({&file, 1});
  }();
  HEADGATE_CHECK(kLoaded.ok());
  HEADGATE_CHECK(world.limiter.OnRules(kLoaded.rules, headgate::base::Instant::FromNanos(0)).ok());
}

std::string Answers(std::string_view input, size_t piece, bool credential) {
  World world({.credential = credential ? "secret" : ""});
  AddRules(world);
  Conversation client(world, {.loopback = !credential});
  std::string output;
  while (!input.empty() && !client.progress.close) {
    const size_t size = std::min(piece, input.size());
    output += client.Send(input.substr(0, size));
    input.remove_prefix(size);
  }
  return output;
}

// The same text without the ids that the server has made.
std::string WithoutIds(std::string output) {
  constexpr std::string_view kBefore = "$2\r\nid\r\n$32\r\n";
  for (size_t at = 0; (at = output.find(kBefore, at)) != std::string::npos; ++at) {
    const size_t digits = at + kBefore.size();
    std::fill_n(output.begin() + static_cast<ptrdiff_t>(digits),
                std::min<size_t>(32, output.size() - digits), '0');
  }
  return output;
}

void CheckWhole(std::string_view output) {
  RespReader reader;
  while (!output.empty()) {
    size_t consumed = 0;
    HEADGATE_CHECK(reader.Read(output, consumed) == RespReader::Step::kValue);
    output.remove_prefix(consumed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const bool credential = (data[0] & 0x80) != 0;
  const size_t piece = 1 + (data[0] & 0x7f) % 61;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Answers(input, input.size(), credential);
  CheckWhole(whole);
  HEADGATE_CHECK(WithoutIds(Answers(input, piece, credential)) == WithoutIds(whole));
  return 0;
}
