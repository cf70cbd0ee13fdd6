#include "headgate/store/redis/script.h"

#include <array>

#include "headgate/store/redis/digest.h"
#include "headgate/store/redis/script_texts.h"

namespace headgate::store::redis {
namespace {

using algorithm::Algorithm;

Script Make(std::string_view name, std::string_view text) { return {name, text, DigestHex(Digest::kSha1, text)}; }

const std::array<Script, 5>& Scripts() {
  static const std::array<Script, 5> scripts = {
      Make("meter", kMeterText), Make("queue", kQueueText), Make("fixed_window", kFixedWindowText),
      Make("sliding_counter", kSlidingCounterText), Make("sliding_log", kSlidingLogText)};
  return scripts;
}

}  // namespace

const Script& ScriptOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Scripts()[0];
    case Algorithm::kLeakyBucketQueue:
      return Scripts()[1];
    case Algorithm::kFixedWindow:
      return Scripts()[2];
    case Algorithm::kSlidingWindowCounter:
      return Scripts()[3];
    case Algorithm::kSlidingWindowLog:
      return Scripts()[4];
  }
  __builtin_unreachable();
}

std::span<const Script> AllScripts() { return Scripts(); }

}  // namespace headgate::store::redis
