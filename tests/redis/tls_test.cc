// The client over TLS, with the test's own CA, a certificate for localhost, and a client
// certificate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/redis/client_fixture.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_test {
namespace tls_test {

using store::redis::RedisOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-tls-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const auto run = [](const std::string& command) {
      EXPECT_EQ(std::system(("cd " + folder_ + " && (" + command + ") >log 2>&1").c_str()), 0)
          << command;
    };
    run("openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj "
        "/CN=test-ca");
    for (const std::string name : {"localhost", "client"}) {
      run("openssl req -newkey rsa:2048 -nodes -keyout " + name + ".key -out " + name +
          ".csr -subj /CN=" + name + " && printf 'subjectAltName=DNS:" + name + "' > " + name +
          ".ext && openssl x509 -req -in " + name +
          ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + name + ".ext -out " +
          name + ".pem");
    }
    port_ = FreePort();
    server_ = new RedisProcess({"--tls-port", std::to_string(port_), "--tls-cert-file",
                                File("localhost.pem"), "--tls-key-file", File("localhost.key"),
                                "--tls-ca-cert-file", File("ca.pem"), "--tls-auth-clients", "yes"});
  }
  static void TearDownTestSuite() {
    delete server_;
    std::filesystem::remove_all(folder_);
  }
  static std::string File(const std::string& name) { return folder_ + "/" + name; }
  static RedisOptions Options() {
    RedisOptions options = TestClient::Single(port_);
    options.servers[0].host = "localhost";
    options.tls = true;
    options.tls_files = {.ca_file = File("ca.pem"),
                         .certificate_file = File("client.pem"),
                         .key_file = File("client.key")};
    return options;
  }

  static inline std::string folder_;
  static inline uint16_t port_ = 0;
  static inline RedisProcess* server_ = nullptr;
};

TEST_F(Tls, CarriesCalls) {
  TestClient test(Options());
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "1");
  std::vector<std::string> answers;
  for (int i = 0; i < 500; ++i) {
    const std::string_view argument = "1";
    test.client->Call({.script = &AddScript(), .key = "a", .arguments = {&argument, 1}}, {},
                      [&](const store::redis::PendingCall::Outcome& reply) {
                        answers.push_back(test.Text(reply));
                      });
  }
  ASSERT_TRUE(test.Until([&] { return answers.size() == 500; }));
  EXPECT_EQ(answers.back(), "501");
}

TEST_F(Tls, RefusesACertificateForAnotherHost) {
  RedisOptions options = Options();
  options.servers[0].host = "127.0.0.1";
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
  EXPECT_THAT(test.connections, ElementsAre(HasSubstr("certificate verify failed")));
  options.tls_server_name = "localhost";
  TestClient named(options);
  EXPECT_NE(named.Call(AddScript(), "b", {"1"}), "UNAVAILABLE");
}

TEST_F(Tls, RefusesACertificateFromAnUnknownCa) {
  RedisOptions options = Options();
  options.tls_files.ca_file = File("client.pem");
  TestClient test(options);
  EXPECT_EQ(test.Call(AddScript(), "a", {"1"}), "UNAVAILABLE");
}

TEST_F(Tls, IsRefusedWithoutAClientCertificateIfTheServerRequiresOne) {
  RedisOptions options = Options();
  options.tls_files.certificate_file = options.tls_files.key_file = "";
  TestClient test(options);
  EXPECT_THAT(test.Call(AddScript(), "a", {"1"}), ::testing::AnyOf("UNAVAILABLE", "ABORTED"));
}

}  // namespace tls_test
}  // namespace headgate::redis_test
