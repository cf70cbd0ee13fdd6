// Reads any text as a URL. It is refused, or it names a table, and the name of the table is read
// back as the same table.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/dynamodb/table_url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace dynamodb = headgate::store::dynamodb;
  const std::string_view url(reinterpret_cast<const char*>(data), size);
  const dynamodb::Environment none = [](const char*) { return std::string(); };
  const auto table = dynamodb::ParseTableUrl(url, none);
  if (!table.ok()) return 0;
  auto again = dynamodb::ParseTableUrl(dynamodb::NameOf(*table), none);
  HEADGATE_CHECK(again.ok());
  // The profile says where the credentials are, not which table it is.
  again->profile = table->profile;
  HEADGATE_CHECK(*again == *table);
  return 0;
}
