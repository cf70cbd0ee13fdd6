// Reading any file is safe, and a body that is accepted can be rendered. Text that is not in a
// placeholder is copied.
#include <cstdint>
#include <string>

#include "headgate/base/check.h"
#include "headgate/rule/read/refusal_reader.h"
#include "headgate/rule/refusal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::rule;
  using namespace headgate::rule::read;
  const std::string text(static_cast<const char*>(static_cast<const void*>(data)), size);
  const LoadedRefusal loaded = LoadRefusal("f.yaml", text);
  HEADGATE_CHECK((loaded.refusal == nullptr) == !loaded.problems.empty());

  const auto plain = Refusal::Make("text/plain", text);
  if (!plain.ok()) {
    HEADGATE_CHECK(size > kRefusalBodyBytesMax || text.find("${") != text.npos);
    return 0;
  }
  std::string body;
  plain->AppendBody({.rule = "r", .limit = 5, .seconds = 7}, body);
  HEADGATE_CHECK(text.find("${") != text.npos || body == text);
  // A name cannot end a JSON string early.
  const auto json = Refusal::Make("application/json", "\"${rule}\"");
  body.clear();
  json->AppendBody({.rule = text}, body);
  for (size_t i = 1; i + 1 < body.size(); ++i) {
    HEADGATE_CHECK(body[i] != '"');
    if (body[i] == '\\') ++i;
  }
  HEADGATE_CHECK(body.back() == '"');
  return 0;
}
