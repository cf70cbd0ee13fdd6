// Reads any text as a file of credentials and as the answer of an endpoint. It is refused, or its
// keys are valid in the fields of a request.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/dynamodb/credentials.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace dynamodb = headgate::store::dynamodb;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& found :
       {dynamodb::CredentialsInFile(text, "default"), dynamodb::CredentialsInJson(text)}) {
    if (found.ok()) HEADGATE_CHECK(dynamodb::AreUsable(*found));
  }
  return 0;
}
