// The hints of commands by the cause: files and sockets that this user may not use, files of
// another kind, and words that are nearly right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headgate/app/command_line.h"
#include "headgate/app/command_words.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::app {
namespace hints_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Root may read everything, so a test is another user for a while.
class AnotherUser {
 public:
  AnotherUser() : user_(::geteuid()) { Become(user_ == 0 ? 65534 : user_); }
  ~AnotherUser() { Become(user_); }
  AnotherUser(const AnotherUser&) = delete;

 private:
  static void Become(uid_t user) { EXPECT_EQ(::seteuid(user), 0); }
  const uid_t user_;
};

class Hints : public ::testing::Test {
 protected:
  Hints() { std::filesystem::create_directory(directory_); }
  ~Hints() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name, std::string_view text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }

  // A file that nobody may read but root.
  std::string Forbidden() {
    const std::string path = File("forbidden", "secret\n");
    EXPECT_EQ(::chmod(path.c_str(), 0), 0);
    return path;
  }

  // The output of a command on both channels, with the directory replaced by "DIR".
  std::string Say(const std::vector<std::string>& arguments) {
    std::ostringstream said;
    code_ = RunCommandLine(arguments, {.out = said, .err = said});
    std::string text = said.str();
    for (size_t at = text.find(directory_); at != std::string::npos; at = text.find(directory_))
      text.replace(at, directory_.string().size(), "DIR");
    return text;
  }

  const std::filesystem::path directory_ = std::filesystem::temp_directory_path() /
                                           ("headgate_hints_test_" + std::to_string(::getpid()));
  int code_ = -1;
};

TEST_F(Hints, AFileThatThisUserMayNotRead) {
  const std::string file = Forbidden();
  const AnotherUser user;
  using Words = std::vector<std::string>;
  for (Words words : {Words{"serve", "--rules", file},
                      {"serve", "--auth", file},
                      {"serve", "--users-file", file},
                      {"serve", "--credential-file", file},
                      {"serve", "--partition-key-secret-file", file},
                      {"serve", "--reservation-secret-file", file},
                      {"serve", "--listen", "tls:127.0.0.1:0", "--tls-certificate-file", file,
                       "--tls-key-file", file},
                      {"sidecar", "--upstream", "http://127.0.0.1:1", "--capacity", "1",
                       "--credential-file", file},
                      {"sidecar", "--upstream", "http://127.0.0.1:1", "--capacity", "1", "--listen",
                       "tls:127.0.0.1:0", "--tls-certificate-file", file, "--tls-key-file", file},
                      {"validate", file},
                      {"validate", "--auth", file},
                      {"check", "--credential-file", file, "a=b"},
                      {"check", "--server", "tls:127.0.0.1:1", "--ca-file", file, "a=b"},
                      {"bench", "--credential-file", file}}) {
    if (words[0] == "serve") words.insert(words.end(), {"--admin-listen", "none"});
    const std::string said = Say(words);
    EXPECT_EQ(code_, 2) << said;
    EXPECT_THAT(said,
                AllOf(HasSubstr("Permission denied"), HasSubstr("hint: let this user read it\n")))
        << ::testing::PrintToString(words);
  }
}

TEST_F(Hints, AFileThatIsMissing) {
  const std::string gone = directory_ / "gone";
  EXPECT_THAT(Say({"serve", "--users-file", gone}),
              EndsWith("hint: name a file of users; docs/reference/users.md shows one\n"));
  EXPECT_THAT(Say({"serve", "--auth", gone}), HasSubstr("hint: name a file of mappings"));
  const std::string users = File("users", "ann check nonsense\n");
  EXPECT_THAT(Say({"serve", "--users-file", users}), HasSubstr("hint: `headgate hash-password`"));
}

TEST_F(Hints, ASocketThatThisUserMayNotUse) {
  const std::string path = directory_ / "socket";
  const net::FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const AnotherUser user;
  for (const std::string command : {"check", "bench", "rules"}) {
    std::vector<std::string> words = {command, "--server", "unix:" + path};
    if (command == "check") words.emplace_back("a=b");
    if (command == "rules") words.emplace_back("list");
    EXPECT_THAT(Say(words),
                AllOf(HasSubstr("Permission denied"),
                      EndsWith("hint: let this user write to the socket; `headgate serve --listen "
                               "'unix:DIR/socket?mode=0660'` lets its group\n")))
        << command;
    EXPECT_EQ(code_, 3);
  }
}

TEST_F(Hints, AFileOfMappingsIsNoneOfRules) {
  const std::string mappings =
      File("auth.yaml",
           "trusted_proxies: [127.0.0.1]\noriginal_request: x-original\nipv6_prefix: 64\n"
           "forwarding_header: none\nmappings:\n- path: /a\n");
  EXPECT_EQ(Say({"validate", mappings}),
            "error: DIR/auth.yaml: this is a file of mappings, not of rules\n"
            "hint: `headgate validate --auth DIR/auth.yaml` checks it; serve takes it with --auth, "
            "sidecar with --mappings\n"
            "not valid: 1 problem in 1 file\n");
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(nlohmann::json::parse(Say({"validate", "--json", mappings})).at("problem_count"), 1);
  const std::string rules = File("rules.yaml", "domain: d\ndescriptors: []\nmappings: []\n");
  EXPECT_THAT(Say({"validate", rules}), Not(HasSubstr("of mappings")));
}

TEST_F(Hints, AllFilesOfSettingsAreReportedTogether) {
  const std::string gone = directory_ / "gone";
  const std::string said =
      Say({"serve", "--auth", gone + ".auth", "--rules", gone + ".rules", "--rule", "nonsense",
           "--users-file", gone + ".users", "--credential-file", gone + ".credential"});
  for (const char* file : {"gone.auth", "gone.rules", "gone.users", "gone.credential"})
    EXPECT_THAT(said, HasSubstr(file)) << said;
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(Say({"serve", "--threads", "many", "--rule", "nonsense"}),
              AllOf(HasSubstr("threads 'many'"), HasSubstr("rule \"nonsense\"")));
}

TEST_F(Hints, CertificatesAndKeysAreCounted) {
  const auto serve = [&](size_t certificates, size_t keys) {
    std::vector<std::string> words = {"serve", "--listen", "tls:127.0.0.1:0"};
    for (size_t i = 0; i < certificates; ++i)
      words.insert(words.end(), {"--tls-certificate-file", "c.pem"});
    for (size_t i = 0; i < keys; ++i) words.insert(words.end(), {"--tls-key-file", "k.pem"});
    return Say(words);
  };
  EXPECT_THAT(serve(1, 0), HasSubstr("error: tls_key_file: a certificate has no key\n"));
  EXPECT_THAT(serve(3, 1), HasSubstr("error: --tls-key-file: 2 certificates have no key\n"));
  EXPECT_THAT(serve(1, 2), HasSubstr("error: --tls-key-file: a key has no certificate\n"));
}

TEST_F(Hints, HelpTakesOneCommand) {
  EXPECT_EQ(Say({"help", "check", "bench"}),
            "error: unknown argument 'bench' to `headgate help`\n"
            "hint: it takes one command: headgate help check, headgate help serve --all\n");
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(Say({"hlep"}), "error: unknown command 'hlep'\nhint: did you mean 'help'?\n");
  EXPECT_EQ(Say({"help", "help"}), Say({"help"}));
  EXPECT_EQ(code_, 0);
}

TEST_F(Hints, CompletesTheWordsBehindACommand) {
  const auto words_of = [](std::string_view name) {
    for (CommandWords& command : AllCommandWords()) {
      if (command.name == name) return std::move(command.choices);
    }
    return std::vector<std::string>{"(no such command)"};
  };
  EXPECT_THAT(words_of("rules"), ElementsAre("list", "get", "put", "delete", "rollout", "history",
                                             "rollback", "confirm"));
  EXPECT_THAT(words_of("store"), ElementsAre("create-table", "show"));
  EXPECT_THAT(words_of("completion"), ElementsAre("bash", "zsh", "fish"));
  for (const char* other : {"serve", "check", "explain", "validate", "bench", "man", "version"})
    EXPECT_THAT(words_of(other), ElementsAre()) << other;
}

// The command in the hint of `check` works as it is.
TEST_F(Hints, TheCommandForExplainCanBePasted) {
  const std::string rules = File(
      "edge.yaml",
      "domain: edge\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, requests_per_unit: 1}\n");
  EXPECT_THAT(Say({"check", "--rules", rules, "--rule", "it's: 1/s", "--merge-domains", "edge",
                   R"(other="a b")", "more=k"}),
              HasSubstr(R"(`headgate explain --rules DIR/edge.yaml --rule 'it'\''s: 1/s' )"
                        R"(--merge-domains edge 'other="a b"'` shows each step)"));
  EXPECT_THAT(Say({"explain", "--rules", rules, "--rule", "it's: 1/s", "--merge-domains", "edge",
                   R"(other="a b")"}),
              HasSubstr("no rule"));
}

}  // namespace hints_test
}  // namespace headgate::app
