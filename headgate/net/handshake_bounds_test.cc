// The memory of TLS handshakes that are not complete: the bound of a ClientHello, and their part of
// the budget of all buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headgate/net/client_hello_bound.h"
#include "headgate/net/server_rig.h"
#include "headgate/net/test_certificate.h"

namespace headgate::net {
namespace handshake_bounds_test {

using namespace std::chrono_literals;
using ::testing::StartsWith;

constexpr size_t kMax = ClientHelloBound::kBytesMax;
constexpr size_t kPerHandshake = size_t{40} << 10;      // limits.md
constexpr size_t kWithCertificates = size_t{72} << 10;  // limits.md
constexpr size_t kBudget = size_t{1} << 20;

// RFC 8446, 5.1 and 4: a handshake record with the header of a ClientHello.
std::string HelloThatAnnounces(size_t size) {
  return {22,
          3,
          1,
          0,
          4,
          1,
          static_cast<char>(size >> 16),
          static_cast<char>(size >> 8),
          static_cast<char>(size)};
}

// A client whose bytes pass through memory.
class TlsClient {
 public:
  // Its ClientHello offers protocols by ALPN, with their lengths in `alpn_bytes` bytes.
  explicit TlsClient(size_t alpn_bytes = 0) {
    std::string offer;
    while (offer.size() + 1 < alpn_bytes) {
      size_t size = std::min<size_t>(255, alpn_bytes - offer.size() - 1);
      // At least one more byte, or none, must be left for the next name.
      if (alpn_bytes - offer.size() - 1 - size == 1) --size;
      offer += static_cast<char>(size) + std::string(size, 'p');
    }
    if (!offer.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(offer.data()),
                          static_cast<unsigned>(offer.size()));
    }
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_connect_state(ssl_);
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsClient(const TlsClient&) = delete;

  void ShowCertificate(const TestCertificate& certificate) {
    SSL_use_certificate_file(ssl_, certificate.certificate_file().c_str(), SSL_FILETYPE_PEM);
    SSL_use_PrivateKey_file(ssl_, certificate.key_file().c_str(), SSL_FILETYPE_PEM);
  }
  // Continues the handshake, and returns the bytes to send.
  std::string Continue(std::string_view received = {}) {
    if (!received.empty()) BIO_write(in_, received.data(), static_cast<int>(received.size()));
    SSL_do_handshake(ssl_);
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  bool done() const { return SSL_is_init_finished(ssl_) != 0; }

 private:
  SSL_CTX* const context_ = SSL_CTX_new(TLS_client_method());
  SSL* const ssl_ = SSL_new(context_);
  BIO* const in_ = BIO_new(BIO_s_mem());
  BIO* const out_ = BIO_new(BIO_s_mem());
};

// The length that the ClientHello at the beginning announces.
size_t BodyOf(std::string_view hello) {
  const auto at = [&](size_t i) { return size_t{static_cast<unsigned char>(hello[i])}; };
  return at(6) << 16 | at(7) << 8 | at(8);
}

// An honest ClientHello whose body has `size` bytes.
std::string HelloOf(size_t size) {
  constexpr size_t kSome = 1000;
  const size_t besides = BodyOf(TlsClient(kSome).Continue()) - kSome;
  return TlsClient(size - besides).Continue();
}

// Echoes.
class EchoSession final : public Session {
 public:
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    output.append(input.data(), input.size());
    return {.consumed = input.size(), .answered = 1};
  }
};

struct EchoProtocol {
  static SessionChoice Choose(std::span<const char> bytes, const Peer&, Room) {
    if (bytes.empty()) return {};
    return {.made = true, .session = std::make_unique<EchoSession>()};
  }
};

class HandshakeBounds : public ::testing::Test {
 protected:
  ListenOptions WithTls() {
    const auto loaded = TlsServer::Load(files);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return {.tls = *loaded};
  }
  void Start() {
    server = std::make_unique<ServerRig<EchoProtocol>>(
        ServerOptions{.buffer_bytes_max = kBudget, .tick = 2ms}, WithTls());
    server->server->Start();
  }
  Counters counters() const { return server->server->counters(); }
  BlockingClient ConnectAndSend(std::string_view bytes) {
    BlockingClient client = server->Connect();
    EXPECT_TRUE(client.Send(bytes).ok());
    return client;
  }
  void AwaitBuffers(size_t bytes) {
    while (counters().buffer_bytes != bytes) std::this_thread::yield();
  }
  // Sends `hello` and reads the beginning of the answer.
  std::string Answer(std::string_view hello) {
    BlockingClient client = ConnectAndSend(hello);
    return ReadBytes(client, 6);
  }

  const TestCertificate certificate;
  TlsServerOptions files{.certificates = {{.certificate_file = certificate.certificate_file(),
                                           .key_file = certificate.key_file()}}};
  std::unique_ptr<ServerRig<EchoProtocol>> server;
};

TEST_F(HandshakeBounds, AClientHelloOfTheBoundIsAnsweredAndALongerOneIsNot) {
  Start();
  ASSERT_EQ(BodyOf(HelloOf(kMax)), kMax);
  EXPECT_THAT(Answer(HelloOf(kMax)), StartsWith("\x16\x03\x03"));
  EXPECT_EQ(counters().failed_handshakes, 0u);
  ASSERT_EQ(BodyOf(HelloOf(kMax + 1)), kMax + 1);
  EXPECT_EQ(Answer(HelloOf(kMax + 1)), "");
  EXPECT_EQ(counters().failed_handshakes, 1u);
  // Nine bytes that announce more suffice.
  EXPECT_EQ(Answer(HelloThatAnnounces(131'000)), "");
  EXPECT_EQ(counters().failed_handshakes, 2u);
}

// A ClientHello without a key share asks for a HelloRetryRequest (RFC 8446, 4.2.8).
TEST_F(HandshakeBounds, TheSecondClientHelloHasTheSameBound) {
  using namespace std::string_literals;
  Start();
  const std::string extensions =
      "\x00\x2b\x00\x03\x02\x03\x04"s              // supported_versions: 1.3
      "\x00\x0d\x00\x06\x00\x04\x04\x03\x08\x04"s  // signature_algorithms
      "\x00\x0a\x00\x04\x00\x02\x00\x1d"s          // supported_groups: x25519
      "\x00\x33\x00\x02\x00\x00"s;                 // key_share: none
  const std::string body = "\x03\x03"s + std::string(32, 'r') + "\x00"s + "\x00\x02\x13\x01"s +
                           "\x01\x00"s + '\x00' + static_cast<char>(extensions.size()) + extensions;
  const std::string message = "\x01\x00\x00"s + static_cast<char>(body.size()) + body;
  const std::string hello = "\x16\x03\x01\x00"s + static_cast<char>(message.size()) + message;
  // The random value of a HelloRetryRequest begins with CF 21 AD 74, behind eleven bytes.
  for (const size_t size : {kMax, kMax + 1}) {
    BlockingClient client = ConnectAndSend(hello);
    EXPECT_EQ(ReadBytes(client, 15).substr(11, 4), "\xcf\x21\xad\x74");
    ASSERT_TRUE(client.Send(HelloThatAnnounces(size)).ok());
    if (size <= kMax) {
      AwaitBuffers(kPerHandshake);
      EXPECT_EQ(counters().failed_handshakes, 0u);
    } else {
      while (counters().failed_handshakes == 0) std::this_thread::yield();
    }
  }
}

TEST_F(HandshakeBounds, AHandshakeCountsFromItsFirstByteToItsEnd) {
  Start();
  BlockingClient silent = server->Connect();
  BlockingClient client = server->Connect();
  while (counters().connections_open < 2) std::this_thread::yield();
  EXPECT_EQ(counters().buffer_bytes, 0u);
  TlsClient tls;
  const std::string hello = tls.Continue();
  ASSERT_TRUE(client.Send(hello.substr(0, 1)).ok());
  AwaitBuffers(kPerHandshake);
  ASSERT_TRUE(client.Send(hello.substr(1)).ok());
  while (!tls.done()) {
    const auto received = client.ReadSome();
    ASSERT_TRUE(received.ok() && !received->empty());
    EXPECT_EQ(counters().buffer_bytes, kPerHandshake);
    ASSERT_TRUE(client.Send(tls.Continue(*received)).ok());
  }
  AwaitBuffers(0);
  EXPECT_EQ(counters().failed_handshakes, 0u);
}

TEST_F(HandshakeBounds, CertificatesOfClientsCountWhileTheyAreExpected) {
  files.client_ca_file = certificate.certificate_file();
  Start();
  TlsClient tls;
  const std::string hello = tls.Continue();
  BlockingClient client = ConnectAndSend(hello.substr(0, 9));
  AwaitBuffers(kPerHandshake);
  ASSERT_TRUE(client.Send(hello.substr(9)).ok());
  AwaitBuffers(kWithCertificates);
}

// A certificate for names of this many bytes together.
std::unique_ptr<TestCertificate> LargeCertificate(size_t names_bytes) {
  // Each name has a tag and a length before it (X.690).
  const std::string name(98, 'n');
  std::string names;
  for (size_t bytes = 0; bytes < names_bytes; bytes += name.size() + 2)
    names += (names.empty() ? "DNS:" : ",DNS:") + name;
  return std::make_unique<TestCertificate>(names.c_str());
}

TEST_F(HandshakeBounds, ACertificateOfAClientHasABound) {
  // Besides its names, a certificate has some 400 bytes.
  for (const size_t names_bytes : {size_t{32'000}, size_t{33'000}}) {
    const auto large = LargeCertificate(names_bytes);
    files.client_ca_file = large->certificate_file();
    Start();
    TlsClient tls;
    tls.ShowCertificate(*large);
    BlockingClient client = ConnectAndSend(tls.Continue());
    while (!tls.done()) {
      const auto received = client.ReadSome();
      ASSERT_TRUE(received.ok() && !received->empty());
      ASSERT_TRUE(client.Send(tls.Continue(*received)).ok());
    }
    if (names_bytes == 32'000) {
      AwaitBuffers(0);
      EXPECT_EQ(counters().failed_handshakes, 0u);
      EXPECT_EQ(counters().connections_open, 1u);
    } else {
      while (counters().connections_open > 0) std::this_thread::yield();
      EXPECT_EQ(counters().failed_handshakes, 1u);
    }
  }
}

TEST_F(HandshakeBounds, BeyondTheBudgetTheSlowestHandshakeEnds) {
  Start();
  constexpr size_t kFit = kBudget / kPerHandshake;
  std::vector<BlockingClient> clients;
  clients.push_back(ConnectAndSend(HelloThatAnnounces(300)));
  AwaitBuffers(kPerHandshake);
  server->source.Advance(3s);
  while (clients.size() < kFit) clients.push_back(ConnectAndSend(HelloThatAnnounces(300)));
  AwaitBuffers(kFit * kPerHandshake);
  EXPECT_EQ(counters().buffers_shed, 0u);
  clients.push_back(ConnectAndSend(HelloThatAnnounces(300)));
  EXPECT_EQ(*clients.front().ReadToEnd(1000), "");
  // Down to 15/16 of the budget.
  constexpr size_t kStay = kBudget / 16 * 15 / kPerHandshake;
  AwaitBuffers(kStay * kPerHandshake);
  EXPECT_EQ(counters().buffers_shed, kFit + 1 - kStay);
  while (counters().connections_open != kStay) std::this_thread::yield();
}

}  // namespace handshake_bounds_test
}  // namespace headgate::net
