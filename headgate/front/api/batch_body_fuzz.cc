// Splits any body into checks: the parts lie in the body, in order and apart, and each is an
// object.
#include <cstdint>
#include <string_view>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/front/api/batch_body.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using headgate::front::api::CheckText;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  std::vector<CheckText> checks;
  const auto error = headgate::front::api::SplitChecks(body, checks);
  HEADGATE_CHECK(checks.size() <= headgate::front::api::kChecksMax);
  size_t end = 0;
  for (const CheckText& check : checks) {
    HEADGATE_CHECK(check.begin > end && check.begin + check.size <= size && check.size >= 2);
    HEADGATE_CHECK(body[check.begin] == '{');
    const char last = body[check.begin + check.size - 1];
    HEADGATE_CHECK(last == '}' || last == ']');
    end = check.begin + check.size;
  }
  HEADGATE_CHECK(error || !checks.empty());
  return 0;
}
