#include "headgate/net/tls_transport.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::net {
namespace {

constexpr std::string_view kEnded = "the other end closed the connection";
constexpr std::string_view kEndedUnannounced =
    "the other end closed the connection without a TLS close_notify; what it sent may be "
    "incomplete";

// One call receives at most this much, so that a client whose records carry no data does not delay
// other connections.
constexpr size_t kReceivedPerCall = size_t{64} << 10;
// Changes of the keys without data between them. A client needs none before it has sent gigabytes.
constexpr int kKeyUpdatesMax = 32;
// A client's certificate together with the chain that leads to its authority. OpenSSL's own bound
// is 100 KiB.
constexpr long kCertificatesBytesMax = long{32} << 10;
// The memory that OpenSSL takes for a handshake within ClientHelloBound, as measured: one buffer
// for records and one for messages.
constexpr size_t kHandshakeBytes = size_t{40} << 10;

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// A common name may be in one of several encodings. If the bytes are invalid in their encoding,
// they stay unchanged.
std::string InUtf8(const ASN1_STRING* text) {
  unsigned char* converted = nullptr;
  const int size = ASN1_STRING_to_UTF8(&converted, text);
  if (size < 0) return TextOf(text);
  std::string utf8(reinterpret_cast<const char*>(converted), static_cast<size_t>(size));
  OPENSSL_free(converted);
  return utf8;
}

// See Peer::certificate_name. Empty if it has none.
std::string NameIn(const X509* certificate) {
  std::string found;
  auto* const alternatives = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives) && found.empty(); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type == GEN_DNS || name->type == GEN_URI || name->type == GEN_EMAIL)
      found = TextOf(name->d.ia5);
  }
  GENERAL_NAMES_free(alternatives);
  if (!found.empty()) return found;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  return at < 0 ? found : InUtf8(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

int IntSize(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

struct TlsTransport::Socket {
  static TlsTransport& Of(BIO* bio) { return *static_cast<TlsTransport*>(BIO_get_data(bio)); }
  static bool MayTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  static int Read(BIO* bio, char* out, int size) {
    BIO_clear_retry_flags(bio);
    TlsTransport& self = Of(bio);
    if (self.key_updates_ > kKeyUpdatesMax || self.hello_too_long_) return -1;
    if (self.receive_budget_ == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const ssize_t count = self.Receive(std::span(out, static_cast<size_t>(size)));
    if (count == 0) self.input_ended_ = true;
    if (count > 0) self.receive_budget_ -= std::min(self.receive_budget_, size_t(count));
    if (count < 0 && MayTryAgain()) BIO_set_retry_read(bio);
    if (count > 0 && self.context_->is_server() && !self.hello_over_)
      self.hello_too_long_ = !self.hello_.Take(std::span(out, static_cast<size_t>(count)));
    return self.hello_too_long_ ? -1 : static_cast<int>(count);
  }

  static int Write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t count = ::send(Of(bio).fd(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    if (count < 0 && MayTryAgain()) BIO_set_retry_write(bio);
    return static_cast<int>(count);
  }

  static long Control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    if (command == BIO_CTRL_EOF) return Of(bio).input_ended_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* Method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* const made =
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "headgate socket");
      HEADGATE_CHECK(made != nullptr);
      BIO_meth_set_read(made, &Read);
      BIO_meth_set_write(made, &Write);
      BIO_meth_set_ctrl(made, &Control);
      return made;
    }();
    return method;
  }
};

TlsTransport::TlsTransport(EventLoop& loop, FileDescriptor socket, Owner& owner,
                           std::shared_ptr<const TlsContext> context,
                           const std::string& server_name)
    : Transport(loop, std::move(socket), owner),
      context_(std::move(context)),
      ssl_(context_->NewConnection()) {
  BIO* const bio = BIO_new(Socket::Method());
  HEADGATE_CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_msg_callback(ssl_, &OnMessage);
  SSL_set_msg_callback_arg(ssl_, this);
  SSL_set_bio(ssl_, bio, bio);
  if (context_->is_server()) {
    SSL_set_accept_state(ssl_);
    // Expands the macro SSL_set_max_cert_list.
    SSL_ctrl(ssl_, SSL_CTRL_SET_MAX_CERT_LIST, kCertificatesBytesMax, nullptr);
  } else {
    ExpectServer(server_name);
    SSL_set_connect_state(ssl_);
  }
}

TlsTransport::~TlsTransport() { SSL_free(ssl_); }

void TlsTransport::ExpectServer(const std::string& name) {
  // X509_VERIFY_PARAM_set1_ip_asc fails if `name` is not an address.
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), name.c_str()) == 1) return;
  HEADGATE_CHECK(SSL_set1_host(ssl_, name.c_str()) == 1);
  // Expands the macro SSL_set_tlsext_host_name.
  SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(name.c_str()));
}

void TlsTransport::OnMessage(int is_written, int /*version*/, int type, const void* bytes,
                             size_t size, ssl_st* /*ssl*/, void* transport) {
  TlsTransport& self = *static_cast<TlsTransport*>(transport);
  const std::span message(static_cast<const unsigned char*>(bytes), size);
  if (is_written != 0) {
    // A HelloRetryRequest is a ServerHello, and comes alone (see client_hello_bound.h).
    if (type == SSL3_RT_HANDSHAKE && size > 0 && message[0] != SSL3_MT_SERVER_HELLO)
      self.hello_over_ = true;
    return;
  }
  if (type == SSL3_RT_HANDSHAKE && size > 0 && message[0] == SSL3_MT_KEY_UPDATE)
    ++self.key_updates_;
  // An alert is a level and a description.
  if (type == SSL3_RT_ALERT && size == 2 && message[1] == SSL_AD_CLOSE_NOTIFY)
    self.close_notified_ = true;
}

bool TlsTransport::MayBegin() {
  if (has_begun_ || !context_->is_server()) return true;
  char first = 0;
  const ssize_t count = Receive(std::span(&first, 1), MSG_PEEK);
  has_begun_ = count >= 0 || !Socket::MayTryAgain();
  read_needs_ = Ready::kToRead;
  return has_begun_;
}

Transport::Io TlsTransport::Handshake() {
  if (!MayBegin()) return {.state = State::kWouldBlock};
  receive_budget_ = kReceivedPerCall;
  ERR_clear_error();
  Io io = Result(SSL_do_handshake(ssl_), read_needs_);
  if (io.state == State::kEnd) {
    io.state = State::kFailed;
    error_ = kEnded;
  }
  if (io.state == State::kDone && context_->needs_http2() && alpn() != Alpn::kHttp2) {
    io.state = State::kFailed;
    error_ = "the server does not agree to HTTP/2 (ALPN)";
  }
  if (io.state == State::kFailed) error_ = fmt::format("TLS: {}", error_);
  return io;
}

Alpn TlsTransport::alpn() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  const std::string_view agreed(reinterpret_cast<const char*>(name), size);
  return agreed == kAlpnHttp2 ? Alpn::kHttp2 : agreed == kAlpnHttp11 ? Alpn::kHttp11 : Alpn::kNone;
}

void TlsTransport::Describe(Peer& peer) const {
  peer.encrypted = true;
  peer.alpn = alpn();
  const X509* const certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr || SSL_get_verify_result(ssl_) != X509_V_OK) return;
  peer.certificate_name = NameIn(certificate);
}

bool TlsTransport::established() const { return SSL_is_init_finished(ssl_) != 0; }

size_t TlsTransport::handshake_bytes() const {
  if (!has_begun_ || established()) return 0;
  const bool expects_certificate =
      hello_over_ && (SSL_get_verify_mode(ssl_) & SSL_VERIFY_PEER) != 0;
  return kHandshakeBytes + (expects_certificate ? size_t{kCertificatesBytesMax} : 0);
}

bool TlsTransport::distrusts_peer() const { return SSL_get_verify_result(ssl_) != X509_V_OK; }

// A record has at most 16 KiB; a larger buffer takes several records. An answer of a server may end
// with the connection, and an attacker on the path can end the connection early (RFC 8446, 6.1; RFC
// 9112, 9.8).
Transport::Io TlsTransport::Read(std::span<char> buffer) {
  if (!MayBegin()) return {.state = State::kWouldBlock};
  size_t filled = 0;
  receive_budget_ = kReceivedPerCall;
  do {
    ERR_clear_error();
    const int count = SSL_read(ssl_, buffer.data() + filled, IntSize(buffer.size() - filled));
    Io io = Result(count, read_needs_);
    if (io.state == State::kEnd && !close_notified_ && !context_->is_server()) {
      io.state = State::kFailed;
      error_ = kEndedUnannounced;
      ended_unannounced_ = true;
    }
    if (io.state != State::kDone) {
      is_over_ = io.state != State::kWouldBlock;
      return filled > 0 ? Io{.bytes = filled} : io;
    }
    filled += static_cast<size_t>(count);
    key_updates_ = 0;
  } while (filled < buffer.size() && (has_input() || has_received()));
  return {.bytes = filled};
}

Transport::Io TlsTransport::Write(std::string_view bytes) {
  size_t written = 0;
  receive_budget_ = kReceivedPerCall;
  while (written < bytes.size()) {
    ERR_clear_error();
    const int count = SSL_write(ssl_, bytes.data() + written, IntSize(bytes.size() - written));
    const Io io = Result(count, write_needs_);
    if (io.state == State::kEnd) {
      error_ = kEnded;
      return {.state = State::kFailed};
    }
    if (io.state != State::kDone) return written > 0 ? Io{.bytes = written} : io;
    written += static_cast<size_t>(count);
  }
  return {.bytes = written};
}

void TlsTransport::FinishWriting() {
  ERR_clear_error();
  if (SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
  ::shutdown(fd(), SHUT_WR);
}

// After a call that ended with "want read", only a part of a record is pending.
bool TlsTransport::has_received() const {
  return is_over_ || (!wants_input_ && SSL_has_pending(ssl_) != 0);
}

Transport::Io TlsTransport::Result(int returned, Ready& needs) {
  const int system_error = errno;
  const int outcome = SSL_get_error(ssl_, returned);
  wants_input_ = outcome == SSL_ERROR_WANT_READ;
  switch (outcome) {
    case SSL_ERROR_NONE:
      return {.bytes = static_cast<size_t>(std::max(0, returned))};
    case SSL_ERROR_WANT_READ:
      needs = Ready::kToRead;
      return {.state = State::kWouldBlock};
    case SSL_ERROR_WANT_WRITE:
      needs = Ready::kToWrite;
      return {.state = State::kWouldBlock};
    case SSL_ERROR_ZERO_RETURN:
      return {.state = State::kEnd};
    case SSL_ERROR_SYSCALL:
      if (key_updates_ > kKeyUpdatesMax) {
        error_ = "too many changes of the keys";
        return {.state = State::kFailed};
      }
      if (hello_too_long_) {
        error_ =
            fmt::format("the ClientHello is longer than {} bytes", ClientHelloBound::kBytesMax);
        return {.state = State::kFailed};
      }
      error_ = std::generic_category().message(system_error);
      return {.state = State::kFailed};
    default:
      break;
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  error_ = reason != nullptr ? reason : "protocol error";
  if (const long verified = SSL_get_verify_result(ssl_); verified != X509_V_OK) {
    error_ = fmt::format("{} ({})", error_, X509_verify_cert_error_string(verified));
  }
  return {.state = State::kFailed};
}

}  // namespace headgate::net
