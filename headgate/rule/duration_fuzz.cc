// Every accepted duration is printed in a form that is read back as the same duration.
#include <cstdint>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/rule/duration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto duration =
      headgate::rule::ParseDuration(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!duration.ok()) return 0;
  HEADGATE_CHECK(duration->count() >= 0);
  HEADGATE_CHECK(*duration <= headgate::base::kDurationMax);
  const auto again = headgate::rule::ParseDuration(headgate::rule::FormatDuration(*duration));
  HEADGATE_CHECK(again.ok());
  HEADGATE_CHECK(*again == *duration);
  return 0;
}
