// Any bytes cause no crash and no incomplete reply, and give the same replies in any pieces. The
// first byte chooses the pieces, and whether there is a credential.
#include <algorithm>
#include <array>

#include "headgate/base/check.h"
#include "headgate/front/resp/conversation.h"
#include "headgate/rule/builder.h"
#include "headgate/wire/resp_reader.h"

namespace {

using headgate::front::resp::Conversation;
using headgate::front::resp::World;
using headgate::wire::RespReader;

// A domain `d` whose rule `k` allows 5 per second.
void AddRules(World& world) {
  const std::array rules{headgate::rule::PlainRule{
      .domain = "d",
      .key = "k",
      .limits = {
          *headgate::algorithm::Limit::Make({.requests = 5, .period = std::chrono::seconds(1)})}}};
  HEADGATE_CHECK(
      world.limiter
          .OnRules(*headgate::rule::BuildRules(rules), headgate::base::Instant::FromNanos(0))
          .ok());
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
  HEADGATE_CHECK(Answers(input, piece, credential) == whole);
  return 0;
}
