#include "headgate/store/redis/error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace error_text_test {

TEST(ErrorText, IsKeptWhereItRepeatsNothing) {
  for (const std::string_view error :
       {"", "OOM command not allowed when used memory > 'maxmemory'.",
        "NOPERM User headgate has no permissions to run the 'evalsha' command",
        "ERR unknown subcommand 'client|setinfo'. Try CLIENT HELP.",
        "ERR Unknown Redis command called from script script: 5f1a, on @user_script:14.",
        "READONLY You can't write against a read only replica.",
        "NOPERM The user executing the script can't run this command or subcommand script: "
        "0123456789abcdef0123456789abcdef01234567, on @user_script:12."}) {
    EXPECT_EQ(WithoutArguments(error), error);
  }
}

TEST(ErrorText, EndsBeforeTheArgumentsOfACommandThatIsNotKnown) {
  EXPECT_EQ(
      WithoutArguments(
          "ERR unknown command 'EVALSHA', with args beginning with: '5f1a' '1' 'hg:{t|ann}' "),
      "ERR unknown command 'EVALSHA' …");
  // As Redis 5 wrote it.
  EXPECT_EQ(
      WithoutArguments(
          "ERR unknown command `EVALSHA`, with args beginning with: `5f1a`, `1`, `hg:{t|ann}`, "),
      "ERR unknown command `EVALSHA` …");
}

TEST(ErrorText, KeepsWhereAScriptStoppedBehindWhatIsLeftOut) {
  constexpr std::string_view kWhere =
      " script: 0123456789abcdef0123456789abcdef01234567, on @user_script:12.";
  EXPECT_EQ(WithoutArguments("NOPERM can't access the 'hg:{t|it's ann}' key" + std::string(kWhere)),
            "NOPERM can't access the …" + std::string(kWhere));
  EXPECT_EQ(WithoutArguments(
                "ERR key hg:{t|ann} script: 0123456789abcdef0123456789abcdef01234567, on @ann:12."),
            "ERR key …");
  EXPECT_EQ(WithoutArguments("ERR key hg:{t|ann} script: ann, on @user_script:12."), "ERR key …");
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

}  // namespace error_text_test
}  // namespace headgate::store::redis
