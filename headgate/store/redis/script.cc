#include "headgate/store/redis/script.h"

#include <array>

#include "headgate/store/redis/script_texts.h"
#include "headgate/wire/digest.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::store::redis {
namespace {

using algorithm::Algorithm;

const std::array<Script, 5>& Scripts() {
  static const std::array<Script, 5> scripts = {MakeScript("meter", kMeterText),
                                                MakeScript("queue", kQueueText),
                                                MakeScript("fixed_window", kFixedWindowText),
                                                MakeScript("sliding_counter", kSlidingCounterText),
                                                MakeScript("sliding_log", kSlidingLogText)};
  return scripts;
}

}  // namespace

Script MakeScript(std::string_view name, std::string_view text) {
  Script script{.name = name, .text = text, .sha1 = wire::DigestHex(wire::Digest::kSha1, text)};
  const auto head = [](std::string_view verb, std::string_view which) {
    std::string words;
    wire::RespWriter writer(words, wire::RespVersion::k2);
    writer.Bulk(verb);
    writer.Bulk(which);
    writer.Bulk("1");
    return words;
  };
  script.by_digest = head("EVALSHA", script.sha1);
  script.by_text = head("EVAL", text);
  return script;
}

const Script& ScriptOf(Algorithm algorithm) {
  // Scripts() is ordered by the form of the state, but the first form has two scripts: the meter's
  // and the queue's.
  const algorithm::Traits& traits = algorithm::TraitsOf(algorithm);
  const auto form = static_cast<size_t>(traits.state);
  return Scripts()[form + (form > 0 || traits.queues ? 1 : 0)];
}

std::span<const Script> AllScripts() { return Scripts(); }

}  // namespace headgate::store::redis
