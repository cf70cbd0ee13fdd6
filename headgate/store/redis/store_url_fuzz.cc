// Reads any text as the URL of a store. It is refused, or the URL that is written for it, without
// the login, names the same store.
#include <sys/un.h>

#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/redis/store_url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::store::redis;
  auto options = ParseStoreUrl(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!options.ok()) return 0;
  HEADGATE_CHECK(!options->servers.empty());
  options->password = "from elsewhere";
  const bool long_path = options->servers[0].unix_path.size() >= sizeof(sockaddr_un::sun_path);
  HEADGATE_CHECK(options->Problems().empty() != long_path);
  // A path or a name with special characters would have to be written with %XX.
  const std::string name = StoreName(*options);
  if (name.find_first_of("%?@ ,") != std::string::npos) return 0;
  if (options->master_name.find('/') != std::string::npos) return 0;
  const auto again = ParseStoreUrl(name);
  HEADGATE_CHECK(again.ok() && again->servers == options->servers &&
                 again->topology == options->topology);
  HEADGATE_CHECK(again->database == options->database &&
                 again->master_name == options->master_name);
  return 0;
}
