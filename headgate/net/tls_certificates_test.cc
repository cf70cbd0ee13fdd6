// A server with several certificates behaves alike for each server name: clients are checked,
// protocols are agreed on and sessions are resumed with all of them. The client is OpenSSL itself,
// so that a test chooses everything that a client can send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/net/test_certificate.h"
#include "headgate/net/tls_server.h"
#include "headgate/net/transport.h"

namespace headgate::net {
namespace tls_certificates_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Io = Transport::Io;
using State = Transport::State;

// The server's end: greets the client after the handshake.
class Greeter final : private Transport::Owner {
 public:
  Greeter(EventLoop& loop, FileDescriptor socket, const TlsServer& tls)
      : transport_(Transport::Make(loop, std::move(socket), *this, tls.current())) {
    OnReadable();
  }

  Peer peer;
  std::string error;

 private:
  void OnReadable() override {
    const Io io = transport_->Handshake();
    if (io.state == State::kWouldBlock) return transport_->AwaitRead();
    if (io.state == State::kDone) {
      transport_->Describe(peer);
      transport_->Write("hello");
    } else {
      error = transport_->error();
    }
  }
  void OnWritable() override {}

  std::unique_ptr<Transport> transport_;
};

using Ssl = std::unique_ptr<SSL, decltype(&SSL_free)>;
using Session = std::unique_ptr<SSL_SESSION, decltype(&SSL_SESSION_free)>;

TlsServerOptions::Certificate FilesOf(const TestCertificate& certificate) {
  return {.certificate_file = certificate.certificate_file(), .key_file = certificate.key_file()};
}

class TlsCertificates : public ::testing::TestWithParam<int> {
 protected:
  // The fields that are left empty are not sent.
  struct Client {
    std::string name{};
    const TestCertificate* certificate = nullptr;
    SSL_SESSION* session = nullptr;
  };
  struct Outcome {
    bool greeted = false;
    std::string certificate{};  // the first DNS name of the server's
    int chain_size = 0;
    std::string alpn{};
    bool resumed = false;
    Session session{nullptr, &SSL_SESSION_free};
    std::string client_name{};  // as the server knows it
    std::string refusal{};      // by the server
  };

  void Serve() { server = *TlsServer::Load(options); }

  static std::string FirstNameOf(X509* certificate) {
    auto* const names = static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
    const ASN1_STRING* const text = sk_GENERAL_NAME_value(names, 0)->d.ia5;
    std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
    GENERAL_NAMES_free(names);
    return name;
  }

  // Connects by the TLS version that is this test's parameter.
  Outcome Connect(const Client& client) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const FileDescriptor socket(fds[1]);
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    if (client.certificate != nullptr) {
      SSL_CTX_use_certificate_chain_file(context.get(),
                                         client.certificate->certificate_file().c_str());
      SSL_CTX_use_PrivateKey_file(context.get(), client.certificate->key_file().c_str(),
                                  SSL_FILETYPE_PEM);
    }
    const Ssl ssl(SSL_new(context.get()), &SSL_free);
    SSL_set_min_proto_version(ssl.get(), GetParam());
    SSL_set_max_proto_version(ssl.get(), GetParam());
    if (!client.name.empty()) {
      SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(client.name.c_str()));
    }
    constexpr std::string_view kOffer = "\x08http/1.1\x02h2";
    SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(kOffer.data()),
                        static_cast<unsigned>(kOffer.size()));
    // A copy, because a connection that fails makes its session unusable.
    const Session session(client.session == nullptr ? nullptr : SSL_SESSION_dup(client.session),
                          &SSL_SESSION_free);
    if (session != nullptr) SSL_set_session(ssl.get(), session.get());
    SSL_set_fd(ssl.get(), socket.get());
    SSL_set_connect_state(ssl.get());

    Greeter greeter(loop, FileDescriptor(fds[0]), *server);
    Outcome outcome;
    const bool is_over = loop.RunUntil(
        [&] {
          std::array<char, 16> buffer;
          const int count = SSL_read(ssl.get(), buffer.data(), int{buffer.size()});
          outcome.greeted = count > 0;
          const int error = SSL_get_error(ssl.get(), count);
          return count > 0 || error != SSL_ERROR_WANT_READ;
        },
        10s);
    EXPECT_TRUE(is_over);
    if (X509* const certificate = SSL_get0_peer_certificate(ssl.get()); certificate != nullptr)
      outcome.certificate = FirstNameOf(certificate);
    outcome.chain_size = sk_X509_num(SSL_get_peer_cert_chain(ssl.get()));
    const unsigned char* protocol = nullptr;
    unsigned protocol_size = 0;
    SSL_get0_alpn_selected(ssl.get(), &protocol, &protocol_size);
    outcome.alpn.assign(reinterpret_cast<const char*>(protocol), protocol_size);
    outcome.resumed = SSL_session_reused(ssl.get()) == 1;
    outcome.session.reset(SSL_get1_session(ssl.get()));
    outcome.client_name = greeter.peer.certificate_name;
    outcome.refusal = greeter.error;
    // A session whose connection ends without this is not resumed.
    SSL_shutdown(ssl.get());
    return outcome;
  }

  // The keys are of different kinds, and the second has a chain.
  static void SetUpTestSuite() {
    first_ = new TestCertificate("DNS:a.test");
    second_ = new TestCertificate("DNS:b.test", TestCertificate::Key::kRsa);
    third_ = new TestCertificate("DNS:*.w.test");
    visitor_ = new TestCertificate("DNS:visitor.test");
    std::ofstream(second_->certificate_file(), std::ios::app)
        << std::ifstream(first_->certificate_file()).rdbuf();
  }
  static void TearDownTestSuite() {
    for (const TestCertificate* one : {first_, second_, third_, visitor_}) delete one;
  }

  static inline TestCertificate* first_ = nullptr;
  static inline TestCertificate* second_ = nullptr;
  static inline TestCertificate* third_ = nullptr;
  static inline TestCertificate* visitor_ = nullptr;
  // One for each certificate.
  static constexpr std::array<const char*, 3> kNames = {"a.test", "b.test", "x.w.test"};

  base::SystemClock clock;
  EventLoop loop{clock};
  TlsServerOptions options{.certificates = {FilesOf(*first_), FilesOf(*second_), FilesOf(*third_)},
                           .http2 = true};
  std::shared_ptr<TlsServer> server;
};

TEST_P(TlsCertificates, EachNameHasItsCertificateItsChainAndTheSameProtocols) {
  Serve();
  const std::array<std::pair<const char*, const char*>, 11> wanted = {{
      {"", "a.test"},
      {"a.test", "a.test"},
      {"b.test", "b.test"},
      {"B.TEST", "b.test"},
      {"x.w.test", "*.w.test"},
      {"X.W.Test", "*.w.test"},
      {"y.w.test", "*.w.test"},
      {"w.test", "a.test"},      // a wildcard is for one label
      {"x.y.w.test", "a.test"},  // and for no more
      {"b.test.", "a.test"},     // RFC 6066, 3: a server name has no dot at its end
      {"other.test", "a.test"},
  }};
  for (const auto& [name, certificate] : wanted) {
    const Outcome outcome = Connect({.name = name});
    EXPECT_TRUE(outcome.greeted) << name << ": " << outcome.refusal;
    EXPECT_EQ(outcome.certificate, certificate) << name;
    EXPECT_EQ(outcome.chain_size, outcome.certificate == "b.test" ? 2 : 1) << name;
    EXPECT_EQ(outcome.alpn, "h2") << name;
  }
}

TEST_P(TlsCertificates, ClientsNeedACertificateForEachName) {
  const TestCertificate stranger("DNS:visitor.test");  // signed by another authority
  options.client_ca_file = visitor_->certificate_file();
  options.client_names = {"visitor.test"};
  Serve();
  for (const char* const name : kNames) {
    const Outcome good = Connect({.name = name, .certificate = visitor_});
    EXPECT_TRUE(good.greeted) << name << ": " << good.refusal;
    EXPECT_EQ(good.client_name, "visitor.test") << name;
    EXPECT_EQ(good.alpn, "h2") << name;
    const Outcome without = Connect({.name = name});
    EXPECT_FALSE(without.greeted) << name;
    EXPECT_THAT(without.refusal, HasSubstr("peer did not return a certificate")) << name;
    const Outcome foreign = Connect({.name = name, .certificate = &stranger});
    EXPECT_FALSE(foreign.greeted) << name;
    EXPECT_THAT(foreign.refusal, HasSubstr("certificate verify failed")) << name;
  }
  options.client_names = {"another.test"};
  Serve();
  for (const char* const name : kNames) {
    const Outcome unnamed = Connect({.name = name, .certificate = visitor_});
    EXPECT_FALSE(unnamed.greeted) << name;
    EXPECT_THAT(unnamed.refusal, HasSubstr("hostname mismatch")) << name;
  }
}

TEST_P(TlsCertificates, TheAuthoritiesOfClientsAreReadAgainForEachName) {
  const TestCertificate authority("DNS:old.test");
  const TestCertificate next("DNS:next.test");
  options.client_ca_file = authority.certificate_file();
  Serve();
  std::ofstream(authority.certificate_file(), std::ios::trunc)
      << std::ifstream(next.certificate_file()).rdbuf();
  ASSERT_TRUE(server->Reload().ok());
  for (const char* const name : kNames) {
    const Outcome outcome = Connect({.name = name, .certificate = &next});
    EXPECT_TRUE(outcome.greeted) << name << ": " << outcome.refusal;
    EXPECT_EQ(outcome.client_name, "next.test") << name;
  }
}

TEST_P(TlsCertificates, SessionsOfEachNameAreResumedAfterAReloadToo) {
  Serve();
  for (const char* const name : kNames) {
    Outcome before = Connect({.name = name});
    EXPECT_FALSE(before.resumed) << name;
    for (const bool reloads : {false, true}) {
      if (reloads && !server->Reload().ok()) FAIL();
      Outcome after = Connect({.name = name, .session = before.session.get()});
      EXPECT_TRUE(after.greeted) << name << ": " << after.refusal;
      EXPECT_TRUE(after.resumed) << name << ", reloads: " << reloads;
      EXPECT_EQ(after.alpn, "h2") << name;
      before = std::move(after);
    }
  }
}

// Each connection shows the client's certificate again: a session does not replace it, neither for
// its own name nor for another.
TEST_P(TlsCertificates, ASessionDoesNotReplaceAClientsCertificate) {
  options.client_ca_file = visitor_->certificate_file();
  Serve();
  for (const char* const name : kNames) {
    const Outcome before = Connect({.name = name, .certificate = visitor_});
    ASSERT_TRUE(before.greeted) << name << ": " << before.refusal;
    for (const char* const other : kNames) {
      const Outcome without = Connect({.name = other, .session = before.session.get()});
      EXPECT_FALSE(without.greeted || without.resumed) << name << ", " << other;
      EXPECT_THAT(without.refusal, HasSubstr("peer did not return a certificate"));
      const Outcome again =
          Connect({.name = other, .certificate = visitor_, .session = before.session.get()});
      EXPECT_TRUE(again.greeted) << name << ", " << other << ": " << again.refusal;
      EXPECT_FALSE(again.resumed) << name << ", " << other;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, TlsCertificates,
                         ::testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& version) {
                           return version.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

}  // namespace tls_certificates_test
}  // namespace headgate::net
