#include "headgate/front/resp/throttle_script.h"

#include "headgate/front/resp/conversation.h"
#include "headgate/front/resp/scripts.h"

namespace headgate::front::resp {
namespace throttle_script_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The words that the script calls with, joined by spaces; or the error.
std::string CallOf(std::string_view text, std::vector<std::string_view> words, size_t keys) {
  const auto script = ThrottleScript::Parse(text);
  if (!script.ok()) return std::string(script.status().message());
  const auto call = script->Expand({.words = std::move(words), .keys = keys});
  if (!call.ok()) return std::string(call.status().message());
  std::string joined;
  for (size_t i = 0; i < call->size(); ++i) joined.append(i == 0 ? "" : " ").append((*call)[i]);
  return joined;
}

TEST(ThrottleScript, IsTheCommandThatItCalls) {
  for (const std::string_view text :
       {"return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
        "return redis.call(\"CL.THROTTLE\",KEYS[1],ARGV[1],ARGV[2],ARGV[3]);",
        "\n  return  redis.pcall ( 'CL.THROTTLE' , KEYS [ 1 ] ,\r\n\tARGV[1], ARGV[2], ARGV[3] ) ; "
        "\n",
        "return redis.call('CL.THROTTLE', KEYS[1], unpack(ARGV))",
        "return redis.call('CL.THROTTLE', unpack(KEYS), unpack ( ARGV ))",
        "return redis.call('CL.THROTTLE', tostring(KEYS[1]), tonumber(ARGV[1]), 30, '60')"}) {
    EXPECT_EQ(CallOf(text, {"user", "15", "30", "60"}, 1), "CL.THROTTLE user 15 30 60") << text;
  }
  EXPECT_EQ(
      CallOf("return redis.call('gcra', KEYS[2], 1, 2, 3, 'TOKENS', ARGV[1])", {"a", "b", "5"}, 2),
      "gcra b 1 2 3 TOKENS 5");
}

TEST(ThrottleScript, IsNothingElse) {
  for (const std::string_view text :
       {"", "return 1", "redis.call('CL.THROTTLE', KEYS[1])", "return redis.call()",
        "return redis.call('CL.THROTTLE', KEYS[1]", "return redis.call('CL.THROTTLE', KEYS[1]) + 1",
        "return redis.call('CL.THROTTLE', KEYS[0])", "return redis.call('CL.THROTTLE', KEYS[x])",
        "return redis.call('CL.THROTTLE', KEYS[1] .. 'x')", "return redis.call(KEYS[1], ARGV[1])",
        "return redis.call('CL.THROTTLE', 1.5)", "return redis.call('CL.THROTTLE', -1)",
        "return redis.call('CL.THROTTLE', 'a\\n')", "return redis.call('CL.THROTTLE', ARGVX[1])",
        "returnredis.call('CL.THROTTLE', ARGV[1])",
        "return redis.call('CL.THROTTLE', KEYS[99999999999999999999999])",
        "local k = KEYS[1] return redis.call('CL.THROTTLE', k)",
        "return redis.call('CL.THROTTLE', ARGV[1]) return 1"}) {
    EXPECT_THAT(CallOf(text, {"a", "b"}, 1), StartsWith("this server runs no Lua")) << text;
  }
  EXPECT_THAT(CallOf("return redis.call('CL.THROTTLE', '" + std::string(1024, 'k') + "')", {}, 0),
              StartsWith("this server runs no Lua"));
  EXPECT_EQ(CallOf("return redis.call('GET', KEYS[1])", {"a"}, 1),
            "a script can call CL.THROTTLE or GCRA here, not 'GET'");
}

TEST(ThrottleScript, NeedsItsArguments) {
  const std::string_view text = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[2])";
  EXPECT_EQ(CallOf(text, {"a"}, 1), "the script needs ARGV[2], but has only 0");
  EXPECT_EQ(CallOf(text, {"a", "b", "c"}, 0), "the script needs KEYS[1], but has only 0");
  EXPECT_EQ(CallOf("return redis.call('CL.THROTTLE', unpack(ARGV))",
                   {"1", "2", "3", "4", "5", "6", "7", "8"}, 0),
            "the script calls with too many arguments");
}

// ---- EVAL, EVALSHA and SCRIPT

const std::string_view kScript =
    "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])";
// sha1sum of kScript.
const std::string_view kSha1 = "71e1d52ebf4f37a6de4d4171181f86ae028410fd";

TEST(Eval, DecidesLikeTheCommand) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Ask({"EVAL", kScript, "1", "k", "4", "1", "1000"}),
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n");
  EXPECT_EQ(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1000"}),
            "*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:2000\r\n");
  EXPECT_EQ(client.Send("CL.THROTTLE k 4 1 1000\r\n"), "*5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:3000\r\n");
  EXPECT_EQ(client.Ask({"EVAL", kScript, "1", "k", "x", "1", "1000"}),
            "-Cell error: Store error: Couldn't parse as integer: x\r\n");
}

TEST(Eval, HasTheErrorsOfRedis) {
  World world;
  Conversation client(world);
  const std::string_view none = "0000000000000000000000000000000000000000";
  EXPECT_EQ(client.Ask({"EVALSHA", none, "0"}),
            "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(client.Ask({"EVALSHA", "short", "0"}),
            "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  EXPECT_EQ(client.Ask({"EVAL", kScript, "x"}), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(client.Ask({"EVAL", kScript, "-1"}), "-ERR Number of keys can't be negative\r\n");
  EXPECT_EQ(client.Ask({"EVAL", kScript, "2", "k"}),
            "-ERR Number of keys can't be greater than number of args\r\n");
  EXPECT_EQ(client.Ask({"EVAL", kScript}), "-ERR wrong number of arguments for 'eval' command\r\n");
  EXPECT_THAT(client.Ask({"EVAL", "return 1", "0"}), StartsWith("-ERR this server runs no Lua: "));
  EXPECT_EQ(client.Ask({"EVAL", kScript, "1", "k"}),
            "-ERR the script needs ARGV[1], but has only 0\r\n");
}

TEST(Script, LoadsAndForgets) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Ask({"SCRIPT", "EXISTS", kSha1}), "*1\r\n:0\r\n");
  EXPECT_EQ(client.Ask({"SCRIPT", "LOAD", kScript}), "$40\r\n" + std::string(kSha1) + "\r\n");
  EXPECT_EQ(client.Ask({"SCRIPT", "EXISTS", kSha1, "x"}), "*2\r\n:1\r\n:0\r\n");
  EXPECT_THAT(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1000"}), StartsWith("*5\r\n:0"));
  EXPECT_EQ(client.Ask({"SCRIPT", "FLUSH"}), "+OK\r\n");
  EXPECT_THAT(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1000"}), StartsWith("-NOSCRIPT"));
  EXPECT_THAT(client.Ask({"SCRIPT", "LOAD", "return 1"}), HasSubstr("runs no Lua"));
  EXPECT_EQ(client.Ask({"SCRIPT", "KILL"}), "-ERR unknown subcommand 'KILL'. Try SCRIPT HELP.\r\n");
  Conversation stranger(world, {.loopback = false});
  EXPECT_THAT(stranger.Ask({"SCRIPT", "FLUSH"}), StartsWith("-NOPERM "));
}

TEST(Script, NeedsTheRightOfEval) {
  World world({.users = access::Everybody({})});
  Conversation client(world);
  for (const std::string_view verb : {"LOAD", "EXISTS", "FLUSH", "HELP"})
    EXPECT_EQ(client.Ask({"SCRIPT", verb, kScript}), "-NOAUTH Authentication required.\r\n")
        << verb;
  EXPECT_EQ(FindCommand("script")->needs, FindCommand("eval")->needs);
  World checks({.users = access::Everybody(access::Rights::Of(access::Right::kCheck))});
  Conversation checker(checks);
  EXPECT_THAT(checker.Ask({"SCRIPT", "LOAD", kScript}), StartsWith("$40\r\n"));
  EXPECT_EQ(checker.Ask({"SCRIPT", "EXISTS", kSha1}), "*1\r\n:1\r\n");
  EXPECT_EQ(checker.Ask({"SCRIPT", "FLUSH"}), "-NOAUTH Authentication required.\r\n");
}

TEST(Script, IsKnownAgainOnceItIsSentAgain) {
  const auto load_others = [](Conversation& client) {
    for (size_t i = 0; i < Scripts::kMax; ++i) {
      const std::string text =
          "return redis.call('CL.THROTTLE', KEYS[1], " + std::to_string(i) + ", 1, 1)";
      ASSERT_THAT(client.Ask({"SCRIPT", "LOAD", text}), StartsWith("$40\r\n"));
    }
  };
  World world;
  Conversation client(world);
  for (int round = 0; round < 2; ++round) {
    client.Ask({"SCRIPT", "LOAD", kScript});
    EXPECT_EQ(client.Ask({"SCRIPT", "EXISTS", kSha1}), "*1\r\n:1\r\n");
    EXPECT_THAT(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1"}), StartsWith("*5\r\n"));
    load_others(client);
    EXPECT_EQ(client.Ask({"SCRIPT", "EXISTS", kSha1}), "*1\r\n:0\r\n");
    EXPECT_THAT(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1"}), StartsWith("-NOSCRIPT"));
    EXPECT_THAT(client.Ask({"EVAL", kScript, "1", "k", "4", "1", "1"}), StartsWith("*5\r\n"));
    EXPECT_THAT(client.Ask({"EVALSHA", kSha1, "1", "k", "4", "1", "1"}), StartsWith("*5\r\n"));
    load_others(client);
  }
}

TEST(Scripts, AreSharedByAllLoopsAndTheOldestIsForgotten) {
  Scripts scripts;
  ScriptCache one(scripts);
  ScriptCache other(scripts);
  const auto text = [](size_t i) {
    return "return redis.call('CL.THROTTLE', KEYS[1], " + std::to_string(i) + ", 1, 1)";
  };
  ASSERT_TRUE(one.OfText(kScript).ok());
  EXPECT_TRUE(other.Exists(kSha1));
  ASSERT_TRUE(other.OfText(kScript).ok());
  for (size_t i = 0; i < Scripts::kMax; ++i) ASSERT_TRUE(one.OfText(text(i)).ok());
  ScriptCache third(scripts);
  for (ScriptCache* cache : {&one, &other, &third}) EXPECT_FALSE(cache->Exists(kSha1));
  ASSERT_TRUE(other.OfText(kScript).ok());
  for (ScriptCache* cache : {&one, &other, &third}) EXPECT_TRUE(cache->Exists(kSha1));
  other.Flush();
  EXPECT_FALSE(one.Exists(kSha1));
  EXPECT_TRUE(one.OfText(kScript).ok());
  EXPECT_TRUE(third.Exists(kSha1));
}

}  // namespace throttle_script_test
}  // namespace headgate::front::resp
