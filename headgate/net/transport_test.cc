// Both kinds of transport over a socket pair: plain bytes and TLS must behave alike.
#include "headgate/net/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "headgate/net/test_certificate.h"
#include "headgate/net/tls_server.h"

namespace headgate::net {
namespace transport_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Io = Transport::Io;
using State = Transport::State;

// One end: writes the bytes it is given, and keeps the bytes it reads.
class End final : private Transport::Owner {
 public:
  void Use(std::unique_ptr<Transport> transport) {
    transport_ = std::move(transport);
    ContinueHandshake();
  }
  void Send(std::string bytes) {
    unsent_ += bytes;
    if (ready) Write();
  }
  Transport& transport() { return *transport_; }
  Transport::Owner& owner() { return *this; }
  void Stop() { transport_.reset(); }

  bool ready = false;
  std::string received;
  std::string error;
  bool ended = false;
  bool reads = true;
  int calls = 0;
  size_t read_bytes_max = 64 * 1024;

 private:
  void ContinueHandshake() {
    const Io io = transport_->Handshake();
    if (io.state == State::kWouldBlock) return transport_->AwaitRead();
    if (io.state != State::kDone) {
      error = transport_->error();
      return;
    }
    ready = true;
    transport_->AwaitRead();
    if (!unsent_.empty()) Write();
  }
  void OnReadable() override {
    ++calls;
    if (!ready) return ContinueHandshake();
    if (!reads) return;
    std::string buffer(read_bytes_max, '\0');
    const Io io = transport_->Read(buffer);
    if (io.state == State::kDone) received.append(buffer, 0, io.bytes);
    if (io.state == State::kEnd) ended = true;
    if (io.state == State::kFailed) error = transport_->error();
    if (io.state == State::kDone || io.state == State::kWouldBlock) transport_->AwaitRead();
  }
  void OnWritable() override { Write(); }
  void Write() {
    while (!unsent_.empty()) {
      const Io io = transport_->Write(unsent_);
      if (io.state == State::kWouldBlock) return transport_->AwaitWrite();
      if (io.state != State::kDone) {
        error = transport_->error();
        return;
      }
      unsent_.erase(0, io.bytes);
    }
  }

  std::unique_ptr<Transport> transport_;
  std::string unsent_;
};

enum class Kind : uint8_t { kPlain, kTls };

class TransportPair : public ::testing::TestWithParam<Kind> {
 protected:
  static void SetUpTestSuite() { certificate_ = new TestCertificate; }
  static void TearDownTestSuite() { delete certificate_; }

  static TlsServerOptions::Certificate FilesOf(const TestCertificate& certificate) {
    return {.certificate_file = certificate.certificate_file(), .key_file = certificate.key_file()};
  }

  void Connect(const std::string& server_name = "localhost") {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    FileDescriptor client_socket(fds[0]);
    FileDescriptor server_socket(fds[1]);
    if (GetParam() == Kind::kPlain) {
      server.Use(Transport::Make(loop, std::move(server_socket), server.owner(), nullptr));
      client.Use(Transport::Make(loop, std::move(client_socket), client.owner(), nullptr));
      return;
    }
    server.Use(Transport::Make(loop, std::move(server_socket), server.owner(),
                               (*TlsServer::Load(server_options))->current()));
    client.Use(Transport::Make(loop, std::move(client_socket), client.owner(),
                               *TlsContext::Load(client_files), server_name));
  }
  bool Until(const std::function<bool()>& done) { return loop.RunUntil(done, 10s); }

  static inline TestCertificate* certificate_ = nullptr;
  base::SystemClock clock;
  EventLoop loop{clock};
  TlsServerOptions server_options{.certificates = {FilesOf(*certificate_)}};
  TlsOptions client_files{.ca_file = certificate_->certificate_file()};
  End client, server;
};

TEST_P(TransportPair, CarriesBytesBothWays) {
  Connect();
  client.Send("hello");
  server.Send("world");
  EXPECT_TRUE(Until([&] { return server.received == "hello" && client.received == "world"; }))
      << client.error;
}

TEST_P(TransportPair, CarriesMoreThanTheSystemBuffersInOrder) {
  Connect();
  std::string up;
  std::string down;
  for (size_t i = 0; up.size() < (size_t{3} << 20); ++i) up += std::to_string(i);
  for (size_t i = 0; down.size() < (size_t{3} << 20); ++i) down += std::to_string(i * 7);
  client.Send(up);
  server.Send(down);
  EXPECT_TRUE(Until([&] {
    return server.received.size() >= up.size() && client.received.size() >= down.size();
  }));
  EXPECT_TRUE(server.received == up);
  EXPECT_TRUE(client.received == down);
}

// A record may be larger than one read, and then no readiness event announces its rest.
TEST_P(TransportPair, ASmallBufferGetsEverything) {
  Connect();
  server.read_bytes_max = 7;
  const std::string bytes(50'000, 'x');
  client.Send(bytes);
  EXPECT_TRUE(Until([&] { return server.received.size() == bytes.size(); }));
}

// The system announces bytes and their end once, while nobody awaits them.
TEST_P(TransportPair, BytesAndTheirEndWaitForTheReader) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.reads = false;
  client.Send("last");
  client.transport().FinishWriting();
  EXPECT_FALSE(loop.RunUntil([&] { return server.ended; }, 5ms));
  server.reads = true;
  server.transport().AwaitRead();
  EXPECT_TRUE(Until([&] { return server.ended; })) << server.error;
  EXPECT_EQ(server.received, "last");
}

// No event announces the end, because it came with the bytes, and a read took only them.
TEST_P(TransportPair, AnEndThatCameWithTheLastBytesIsRead) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  client.Send("last");
  client.Stop();
  EXPECT_TRUE(Until([&] { return server.ended || !server.error.empty(); }));
  EXPECT_EQ(server.received, "last");
}

// With TLS, the end may be a record behind the bytes, in the same read.
TEST_P(TransportPair, AnEndThatIsAnnouncedWithTheLastBytesIsRead) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  client.Send("last");
  client.transport().FinishWriting();
  EXPECT_TRUE(Until([&] { return server.ended; })) << server.error;
  EXPECT_EQ(server.received, "last");
}

// Bytes that nobody reads may be there before the end.
TEST_P(TransportPair, TheEndIsNoticedBehindUnreadBytes) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.reads = false;
  client.Send("unread");
  EXPECT_FALSE(loop.RunUntil([] { return false; }, 5ms));
  const int calls = server.calls;
  server.transport().AwaitEnd();
  EXPECT_FALSE(loop.RunUntil([&] { return server.calls > calls; }, 5ms));
  client.Stop();
  EXPECT_TRUE(Until([&] { return server.calls > calls; }));
  server.transport().AwaitEnd();
  EXPECT_TRUE(Until([&] { return server.calls > calls + 1; })) << "it has ended already";
}

TEST_P(TransportPair, ASlowReaderHoldsTheWriterBack) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.reads = false;
  const std::string bytes(size_t{8} << 20, 'x');
  size_t written = 0;
  Io io;
  while (io = client.transport().Write(std::string_view(bytes).substr(written)),
         io.state == State::kDone) {
    written += io.bytes;
    ASSERT_LT(written, bytes.size());
  }
  EXPECT_EQ(io.state, State::kWouldBlock);
}

TEST_P(TransportPair, TellsTheOtherEndThatNoMoreIsWritten) {
  Connect();
  client.Send("last");
  ASSERT_TRUE(Until([&] { return server.received == "last"; }));
  client.transport().FinishWriting();
  EXPECT_TRUE(Until([&] { return server.ended; })) << server.error;
  server.Send("answer");
  EXPECT_TRUE(Until([&] { return client.received == "answer"; }))
      << "the other direction stays open";
}

TEST_P(TransportPair, APeerThatIsGoneIsAnEndOrAnErrorAndNoSignal) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.Stop();
  EXPECT_TRUE(Until([&] { return client.ended || !client.error.empty(); }));
  EXPECT_EQ(client.transport().Write("x").state, State::kFailed);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TransportPair, ::testing::Values(Kind::kPlain, Kind::kTls),
                         [](const auto& kind) {
                           return kind.param == Kind::kPlain ? "Plain" : "Tls";
                         });

class TlsPair : public TransportPair {};

// A read of a Unix socket stops at a message with descriptors, and no event announces what is
// behind.
TEST(UnixTransport, ReadsWhatIsBehindAMessageWithDescriptors) {
  base::SystemClock clock;
  EventLoop loop{clock};
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const FileDescriptor client(fds[1]);
  End server;
  server.Use(Transport::Make(loop, FileDescriptor(fds[0]), server.owner(), nullptr));
  char byte = 'a';
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const passed = CMSG_FIRSTHDR(&message);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = client.get();
  std::memcpy(CMSG_DATA(passed), &fd, sizeof(fd));
  ASSERT_EQ(::sendmsg(client.get(), &message, 0), 1);
  ASSERT_EQ(::send(client.get(), "bc", 2, 0), 2);
  EXPECT_TRUE(loop.RunUntil([&] { return server.received == "abc"; }, 10s)) << server.received;
}

TEST_P(TlsPair, RefusesACertificateForAnotherName) {
  Connect("example.com");
  EXPECT_TRUE(Until([&] { return !client.error.empty(); }));
  EXPECT_THAT(client.error, HasSubstr("certificate verify failed (hostname mismatch)"));
}

TEST_P(TlsPair, TakesACertificateForAnAddress) {
  Connect("127.0.0.1");
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << client.error;
}

TEST_P(TlsPair, RefusesACertificateThatNobodyTrustedSigned) {
  client_files = {};
  Connect();
  EXPECT_TRUE(Until([&] { return !client.error.empty(); }));
  EXPECT_THAT(client.error, HasSubstr("certificate verify failed"));
}

TEST_P(TlsPair, AServerMayAskForAClientsCertificate) {
  server_options.client_ca_file = certificate_->certificate_file();
  Connect();
  EXPECT_TRUE(Until([&] { return !server.error.empty(); }));
  EXPECT_THAT(server.error, HasSubstr("peer did not return a certificate"));
}

TEST_P(TlsPair, AClientsCertificateIsTakenWhereTheServerAsksForIt) {
  server_options.client_ca_file = certificate_->certificate_file();
  client_files.certificate_file = certificate_->certificate_file();
  client_files.key_file = certificate_->key_file();
  Connect();
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << server.error;
}

TEST_P(TlsPair, AClientsCertificateNeedsOneOfTheNames) {
  const TestCertificate client_certificate("DNS:client.example,URI:spiffe://fleet/api");
  server_options.client_ca_file = client_certificate.certificate_file();
  client_files.certificate_file = client_certificate.certificate_file();
  client_files.key_file = client_certificate.key_file();
  for (const std::string_view name : {"client.example", "spiffe://fleet/api"}) {
    server_options.client_names = {"another", std::string(name)};
    Connect();
    EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << server.error;
    client = {};
    server = {};
  }
  server_options.client_names = {"example", "spiffe://fleet", "localhost"};
  Connect();
  EXPECT_TRUE(Until([&] { return !server.error.empty(); }));
  EXPECT_THAT(server.error, HasSubstr("certificate verify failed (hostname mismatch)"));
}

// An answer without a length ends with the connection, which anybody on the way can end.
TEST_P(TlsPair, AServersEndWithoutCloseNotifyIsAnErrorBehindItsBytes) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.Send("part");
  server.Stop();
  EXPECT_TRUE(Until([&] { return client.ended || !client.error.empty(); }));
  EXPECT_EQ(client.received, "part");
  EXPECT_THAT(client.error, HasSubstr("without a TLS close_notify"));
  EXPECT_TRUE(client.transport().ended_unannounced());
  EXPECT_FALSE(client.ended);
}

TEST_P(TlsPair, AServersEndWithCloseNotifyIsAnEnd) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  server.Send("all");
  server.transport().FinishWriting();
  server.Stop();
  EXPECT_TRUE(Until([&] { return client.ended || !client.error.empty(); }));
  EXPECT_EQ(client.received, "all");
  EXPECT_EQ(client.error, "");
}

// Requests say how long they are, so a client's end truncates none.
TEST_P(TlsPair, AClientsEndWithoutCloseNotifyIsAnEnd) {
  Connect();
  ASSERT_TRUE(Until([&] { return client.ready && server.ready; }));
  client.Send("request");
  client.Stop();
  EXPECT_TRUE(Until([&] { return server.ended || !server.error.empty(); }));
  EXPECT_EQ(server.received, "request");
  EXPECT_EQ(server.error, "");
}

TEST_P(TlsPair, AServerWithSeveralCertificatesHasOneForEachName) {
  const TestCertificate other("DNS:*.example.com");
  server_options.certificates.push_back(FilesOf(other));
  Connect("localhost");
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << client.error;
  client = {};
  server = {};
  client_files.ca_file = other.certificate_file();
  Connect("api.example.com");
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << client.error;
  client = {};
  server = {};
  // There is none for this name, so the client gets the first one, which it does not trust.
  Connect("example.org");
  EXPECT_TRUE(Until([&] { return !client.error.empty(); }));
}

Peer PeerOf(End& end) {
  Peer peer;
  end.transport().Describe(peer);
  return peer;
}

TEST_P(TlsPair, AServerThatHasHttp2AgreesToIt) {
  server_options.http2 = true;
  client_files.http2 = true;
  Connect();
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << client.error;
  EXPECT_EQ(PeerOf(server).alpn, Alpn::kHttp2);
  EXPECT_EQ(PeerOf(client).alpn, Alpn::kHttp2);
}

TEST_P(TlsPair, AClientThatOffersNothingAgreesToNothing) {
  server_options.http2 = true;
  Connect();
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << client.error;
  EXPECT_EQ(PeerOf(server).alpn, Alpn::kNone);
}

TEST_P(TlsPair, AClientThatNeedsHttp2RefusesAServerWithoutIt) {
  client_files.http2 = true;
  Connect();
  EXPECT_TRUE(Until([&] { return !client.error.empty(); }));
  EXPECT_THAT(client.error, HasSubstr("the server does not agree to HTTP/2 (ALPN)"));
  EXPECT_FALSE(client.ready);
}

TEST_P(TlsPair, AClientsCertificateHasAName) {
  constexpr std::array<std::pair<const char*, std::string_view>, 4> kNames = {
      {{"DNS:client.example,URI:spiffe://fleet/api", "client.example"},
       {"IP:127.0.0.1,URI:spiffe://fleet/api", "spiffe://fleet/api"},
       {"email:ann@example.com", "ann@example.com"},
       {"IP:127.0.0.1", "test"}}};  // the common name
  for (const auto& [alternatives, name] : kNames) {
    const TestCertificate certificate(alternatives);
    server_options.client_ca_file = certificate.certificate_file();
    client_files.certificate_file = certificate.certificate_file();
    client_files.key_file = certificate.key_file();
    Connect();
    EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << server.error;
    EXPECT_EQ(PeerOf(server).certificate_name, name);
    client = {};
    server = {};
  }
}

// A certificate that nobody has verified names nobody.
TEST_P(TlsPair, ACertificateThatWasNotAskedForHasNoName) {
  client_files.certificate_file = certificate_->certificate_file();
  client_files.key_file = certificate_->key_file();
  Connect();
  EXPECT_TRUE(Until([&] { return client.ready && server.ready; })) << server.error;
  EXPECT_EQ(PeerOf(server).certificate_name, "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TlsPair, ::testing::Values(Kind::kTls),
                         [](const auto&) { return "Tls"; });

TEST(TlsContext, AServerNeedsACertificateAndItsKey) {
  EXPECT_THAT(std::string(TlsServer::Load({}).status().message()),
              HasSubstr("a TLS server needs a certificate and its key"));
  EXPECT_THAT(std::string(TlsServer::Load({.certificates = {{.certificate_file = "/nowhere/c.pem",
                                                             .key_file = "/nowhere/k.pem"}}})
                              .status()
                              .message()),
              HasSubstr("the certificate file '/nowhere/c.pem' cannot be used"));
}

TEST(TlsContext, SaysInPlainWordsWhatIsWrongWithAFile) {
  const TestCertificate one;
  const TestCertificate another;
  const std::string folder = std::filesystem::path(one.key_file()).parent_path();
  const auto write = [&](const std::string& name, std::string_view text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  };
  const auto why = [](const std::string& certificate, const std::string& key) {
    const auto problems = ProblemsOfFiles(
        {.ca_file = {}, .certificate_file = certificate, .key_file = key, .http2 = false});
    return problems.empty() ? std::string() : problems.front().what;
  };
  EXPECT_EQ(why(one.certificate_file(), one.key_file()), "");
  EXPECT_EQ(why(one.certificate_file(), another.key_file()),
            "the key file '" + another.key_file() +
                "' cannot be used: the key does not belong to the certificate in '" +
                one.certificate_file() + "'");
  EVP_PKEY* const ed25519 = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  const std::string other_kind = folder + "/ed25519.pem";
  FILE* const file = std::fopen(other_kind.c_str(), "w");
  PEM_write_PrivateKey(file, ed25519, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  EVP_PKEY_free(ed25519);
  EXPECT_THAT(why(one.certificate_file(), other_kind), HasSubstr("the key does not belong to"));
  const std::string text = write("text", "hello\n");
  EXPECT_THAT(why(text, one.key_file()), EndsWith("it has no certificate in PEM form"));
  EXPECT_THAT(why(one.key_file(), one.key_file()), EndsWith("it has no certificate in PEM form"));
  EXPECT_THAT(why(write("half", "-----BEGIN CERTIFICATE-----\nMIIB\n"), one.key_file()),
              EndsWith("its certificate is damaged"));
  for (const std::string& no_key : {text, one.certificate_file(), write("empty", "")}) {
    EXPECT_THAT(why(one.certificate_file(), no_key),
                EndsWith("it has no private key in PEM form, or a damaged one"));
  }
  for (const std::string& no_authority : {text, one.key_file()}) {
    EXPECT_THAT(ProblemsOfFiles(TlsOptions{.ca_file = no_authority})[0].what,
                EndsWith("it has no certificate in PEM form"));
  }
}

// Test certificates are valid from an hour ago for a day.
TEST(TlsContext, SaysWhichCertificatesAreOutOfDate) {
  const TestCertificate first;
  const TestCertificate second;
  std::vector<TlsServerOptions::Certificate> certificates;
  for (const TestCertificate* one : {&first, &second})
    certificates.push_back(
        {.certificate_file = one->certificate_file(), .key_file = one->key_file()});
  const auto server = (*TlsServer::Load({.certificates = certificates}))->current();
  const base::WallTime now = base::SystemClock().WallNow();
  EXPECT_THAT(server->CertificatesOutOfDate(now), IsEmpty());
  EXPECT_THAT(
      server->CertificatesOutOfDate(now + 25h),
      ElementsAre(HasSubstr("the certificate in '" + first.certificate_file() + "' expired on "),
                  HasSubstr(second.certificate_file())));
  EXPECT_THAT(server->CertificatesOutOfDate(now - 2h),
              ElementsAre(HasSubstr("is not valid before "), HasSubstr("is not valid before ")));
  const auto client = *TlsContext::Load(
      {.certificate_file = first.certificate_file(), .key_file = first.key_file()});
  EXPECT_THAT(client->CertificatesOutOfDate(now + 25h), ElementsAre(HasSubstr("expired on ")));
  EXPECT_THAT((*TlsContext::Load({}))->CertificatesOutOfDate(now), IsEmpty());
}

// All test certificates have the same common name.
TEST(TlsContext, SaysWhichAuthoritiesAreOutOfDate) {
  const TestCertificate certificate;
  const TestCertificate first("DNS:first.test");
  const TestCertificate renewed("DNS:second.test", TestCertificate::Key::kEc, 48);
  const TlsServerOptions options{
      .certificates = {{.certificate_file = certificate.certificate_file(),
                        .key_file = certificate.key_file()}},
      .client_ca_file = first.certificate_file()};
  const base::WallTime now = base::SystemClock().WallNow();
  const auto server = *TlsServer::Load(options);
  EXPECT_THAT(server->current()->CertificatesOutOfDate(now), IsEmpty());
  const auto of_certificate = HasSubstr(certificate.certificate_file());
  const auto of_authority =
      HasSubstr("the authority 'CN = test' in '" + first.certificate_file() + "' expired on ");
  EXPECT_THAT(server->current()->CertificatesOutOfDate(now + 25h),
              ElementsAre(of_certificate, of_authority));
  std::ofstream(first.certificate_file(), std::ios::app)
      << std::ifstream(renewed.certificate_file()).rdbuf();
  ASSERT_TRUE(server->Reload().ok());
  EXPECT_THAT(server->current()->CertificatesOutOfDate(now + 25h), ElementsAre(of_certificate));
  EXPECT_THAT(server->current()->CertificatesOutOfDate(now + 49h),
              ElementsAre(of_certificate, of_authority, of_authority));
  const auto client = *TlsContext::Load({.ca_file = renewed.certificate_file()});
  EXPECT_THAT(client->CertificatesOutOfDate(now + 25h), IsEmpty());
  EXPECT_THAT(client->CertificatesOutOfDate(now + 49h), ElementsAre(HasSubstr("expired on ")));
}

TEST(TlsServer, KeepsItsCertificatesIfNewOnesCannotBeUsed) {
  auto certificate = std::make_unique<TestCertificate>();
  const auto server =
      *TlsServer::Load({.certificates = {{.certificate_file = certificate->certificate_file(),
                                          .key_file = certificate->key_file()}}});
  const auto first = server->current();
  EXPECT_TRUE(server->Reload().ok());
  const auto second = server->current();
  EXPECT_NE(second, first);
  certificate.reset();
  EXPECT_FALSE(server->Reload().ok());
  EXPECT_EQ(server->current(), second);
}

}  // namespace transport_test
}  // namespace headgate::net
