// Any body gives, without a crash, either a complete request within its bounds or a reason. Strings
// must point into the body or the parser's memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/front/api/check_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate;
  static front::api::CheckParser parser;  // reused, as a handler does
  // On the heap and without a terminator, so that a sanitizer detects reads beyond the end.
  const auto bytes = std::make_unique<char[]>(size);
  std::copy_n(data, size, reinterpret_cast<uint8_t*>(bytes.get()));
  const std::string_view body(bytes.get(), size);

  limiter::Request request;
  const std::optional<front::api::BodyError> error = parser.Parse(body, request);
  if (error) {
    HEADGATE_CHECK(!error->detail.empty());
    HEADGATE_CHECK(error->detail.size() < 300);
    return 0;
  }
  HEADGATE_CHECK(!request.domain.empty());
  HEADGATE_CHECK(!request.descriptors.empty());
  HEADGATE_CHECK(request.descriptors.size() <= rule::kDescriptorsMax);
  size_t text_size = request.domain.size();
  unsigned sum = 0;
  for (const rule::Descriptor& descriptor : request.descriptors) {
    HEADGATE_CHECK(!descriptor.entries.empty());
    HEADGATE_CHECK(descriptor.entries.size() <= rule::kEntriesMax);
    for (const rule::Entry& entry : descriptor.entries) {
      HEADGATE_CHECK(!entry.key.empty());
      text_size += entry.key.size() + entry.value.size();
      for (const char c : entry.key) sum += static_cast<unsigned char>(c);
      for (const char c : entry.value) sum += static_cast<unsigned char>(c);
    }
  }
  HEADGATE_CHECK(text_size <= size + rule::kDefaultDomain.size());
  HEADGATE_CHECK(sum <= 255 * size);
  return 0;
}
