#include "headgate/store/redis/error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace {

TEST(ErrorText, IsKeptWhereItRepeatsNothing) {
  for (const std::string_view error :
       {"", "OOM command not allowed when used memory > 'maxmemory'.",
        "NOPERM User headgate has no permissions to run the 'evalsha' command",
        "ERR unknown subcommand 'client|setinfo'. Try CLIENT HELP.",
        "ERR Unknown Redis command called from script script: 5f1a, on @user_script:14."}) {
    EXPECT_EQ(WithoutArguments(error), error);
  }
}

TEST(ErrorText, EndsBeforeTheArgumentsOfACommandThatIsNotKnown) {
  EXPECT_EQ(WithoutArguments("ERR unknown command 'EVALSHA', with args beginning with: '5f1a' '1' 'hg:{t|ann}' "),
            "ERR unknown command 'EVALSHA' …");
  // As Redis 5 wrote it.
  EXPECT_EQ(WithoutArguments("ERR unknown command `EVALSHA`, with args beginning with: `5f1a`, `1`, `hg:{t|ann}`, "),
            "ERR unknown command `EVALSHA` …");
}

TEST(ErrorText, EndsBeforeAKeyHoweverItIsQuoted) {
  EXPECT_EQ(WithoutArguments("NOPERM no permissions to access the 'hg:{t|ann}' key"),
            "NOPERM no permissions to access the …");
  EXPECT_EQ(WithoutArguments("ERR key hg:{t|ann} is locked"), "ERR key …");
  EXPECT_EQ(WithoutArguments("ERR about 'ann@example.org', and 'more'"), "ERR about …");
  EXPECT_EQ(WithoutArguments("ERR about 'x' 'it's ann' and so on"), "ERR about 'x' …");
  EXPECT_EQ(WithoutArguments("ERR about 'it's ann' and so on"), "ERR about …");
  EXPECT_EQ(WithoutArguments("ERR about \"ann"), "ERR about …");
}

}  // namespace
}  // namespace headgate::store::redis
