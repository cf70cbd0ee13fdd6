#include "headgate/wire/alike_names.h"

#include <gtest/gtest.h>

#include <string_view>

namespace headgate::wire {
namespace alike_names_test {

bool IsParameter(std::string_view name, std::string_view wanted) {
  return IsAlikeName(name, NameCoding::kForm, wanted);
}

TEST(AlikeNames, AreTheNamesThatAReaderTakesForOne) {
  for (const std::string_view name :
       {"api_key",           "api.key",       "api%20key",
        "api+key",           "api%2Ekey",     "%20api_key",
        "++api_key",         "api[key",       "api%5bkey",
        "api_key[]",         "api_key%5B%5D", "api_key[x]",
        "api_key[x][y]",     "[api_key]",     "[[api_key",
        "api_key]",          "api_key%00x",   "api_key%00",
        "API_Key",           "?api_key",      "%61pi_key",
        "%u0061pi%u005fkey", "api_key\xa0",   "api_key\xc2\x85",
        "api_key%C2%A0",     "api_key%20",    "api_key\t\xe3\x80\x80"})
    EXPECT_TRUE(IsParameter(name, "api_key")) << name;
  for (const std::string_view name : {"api.key", "api key", "API_KEY"})
    EXPECT_TRUE(IsAlikeName(name, NameCoding::kPlain, "api_key")) << name;
}

TEST(AlikeNames, OtherNamesDiffer) {
  for (const std::string_view name :
       {"", "api", "apikey", "api-key", "api_keys", "xapi_key", "_api_key", "api_key_",
        "x[api_key]", "api_key\xa0s", "api%zzkey", "api%u005", "%u0161pi_key", "api__key"})
    EXPECT_FALSE(IsParameter(name, "api_key")) << name;
  for (const std::string_view name : {"api%20key", "api+key", "%61pi_key"})
    EXPECT_FALSE(IsAlikeName(name, NameCoding::kPlain, "api_key")) << name;
}

TEST(AlikeNames, OfCookiesMayHaveEscapes) {
  EXPECT_TRUE(IsAlikeName("%73id", NameCoding::kEscaped, "sid"));
  EXPECT_TRUE(IsAlikeName("s%2eid", NameCoding::kEscaped, "s_id"));
  EXPECT_FALSE(IsAlikeName("s+id", NameCoding::kEscaped, "s_id"));
  EXPECT_FALSE(IsAlikeName("%u0073id", NameCoding::kEscaped, "sid"));
}

TEST(AlikeNames, AMemberOfAnArrayIsNotAnotherMember) {
  EXPECT_TRUE(IsParameter("filter[id]", "filter[id]"));
  EXPECT_TRUE(IsParameter("filter%5Bid%5D", "filter[id]"));
  EXPECT_FALSE(IsParameter("filter[name]", "filter[id]"));
  EXPECT_FALSE(IsParameter("filter", "filter[id]"));
}

TEST(AlikeFields, DifferInPunctuationAndCase) {
  for (const std::string_view name :
       {"X-API-Key", "x-api-key", "X_API_Key", "X.API-KEY", "x!api~key"})
    EXPECT_TRUE(IsAlikeField(name, "X-API-Key")) << name;
  for (const std::string_view name :
       {"XAPIKey", "X-API-Keys", "X-API", "X--API-Key", "X-API1Key", ""})
    EXPECT_FALSE(IsAlikeField(name, "X-API-Key")) << name;
}

}  // namespace alike_names_test
}  // namespace headgate::wire
