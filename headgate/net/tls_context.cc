#include "headgate/net/tls_context.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/clock.h"
#include "headgate/base/text.h"
#include "headgate/net/alpn.h"
#include "headgate/net/certificate_dates.h"

namespace headgate::net {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

Context NewContext(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  HEADGATE_CHECK(context != nullptr);
  return context;
}

bool Is(unsigned long error, int library, int reason) {
  return ERR_GET_LIB(error) == library && ERR_GET_REASON(error) == reason;
}

// Why the file could not be loaded: the first error since ERR_clear_error. OpenSSL's own words for
// the form of a file ("no start line") help only readers who know PEM.
std::string Reason(TlsProblem::File file) {
  const unsigned long error = ERR_peek_error();
  if (ERR_SYSTEM_ERROR(error)) return std::generic_category().message(ERR_GET_REASON(error));
  const int library = ERR_GET_LIB(error);
  const bool is_form =
      library == ERR_LIB_PEM || library == ERR_LIB_ASN1 || library == ERR_LIB_OSSL_DECODER;
  if (is_form && file == TlsProblem::File::kKey)
    return "it has no private key in PEM form, or a damaged one";
  if (Is(error, ERR_LIB_PEM, PEM_R_NO_START_LINE) ||
      Is(error, ERR_LIB_X509, X509_R_NO_CERTIFICATE_OR_CRL_FOUND))
    return "it has no certificate in PEM form";
  if (is_form) return "its certificate is damaged";
  const char* const words = ERR_reason_error_string(error);
  return words != nullptr ? words : "unknown error";
}

// Whether one of the names is among the subject alternative names of the certificate.
bool HasOneOf(X509* certificate, const std::vector<std::string>& names) {
  auto* const alternatives = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool found = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(alternatives, i);
    if (name->type != GEN_DNS && name->type != GEN_URI && name->type != GEN_EMAIL) continue;
    const ASN1_STRING* const text = name->d.ia5;
    const std::string_view value(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                 static_cast<size_t>(ASN1_STRING_length(text)));
    const bool is_dns = name->type == GEN_DNS;  // DNS names are case-insensitive
    found = found || std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
              return is_dns ? base::EqualsIgnoreCase(wanted, value) : wanted == value;
            });
  }
  GENERAL_NAMES_free(alternatives);
  return found;
}

// For ALPN: the first of the names in `served` that the client offers. The Redis protocol and SPOE
// have no name there.
int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned int offered_size, void* served) {
  for (const std::string_view wanted : *static_cast<const std::vector<std::string_view>*>(served)) {
    for (unsigned int i = 0; i < offered_size; i += 1u + offered[i]) {
      const std::string_view name(reinterpret_cast<const char*>(offered + i + 1), offered[i]);
      if (name != wanted) continue;
      *chosen = offered + i + 1;
      *chosen_size = offered[i];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// OpenSSL would ask for a passphrase on the terminal, and wait.
int RefusePassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  if (asked != nullptr) *static_cast<bool*>(asked) = true;
  return -1;
}

// A pipe would block the reader.
bool IsOtherThanFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

std::vector<TlsProblem> LoadFiles(const TlsOptions& options, SSL_CTX* context) {
  std::vector<TlsProblem> problems;
  bool needs_passphrase = false;
  bool is_of_another = false;  // the key belongs to another certificate
  SSL_CTX_set_default_passwd_cb(context, &RefusePassphrase);
  SSL_CTX_set_default_passwd_cb_userdata(context, &needs_passphrase);
  // Whether `load` could use the file.
  const auto use = [&](TlsProblem::File file, std::string_view what, const std::string& path,
                       const auto& load) {
    ERR_clear_error();
    const bool is_other = IsOtherThanFile(path);
    if (!is_other && load(path.c_str()) == 1) return true;
    const std::string why = is_other           ? "it is not a file"
                            : needs_passphrase ? "it needs a passphrase; write it without one"
                            : is_of_another
                                ? fmt::format("the key does not belong to the certificate in '{}'",
                                              options.certificate_file)
                                : Reason(file);
    problems.push_back({file, fmt::format("{} '{}' cannot be used: {}", what, path, why)});
    ERR_clear_error();
    return false;
  };
  if (!options.ca_file.empty()) {
    use(TlsProblem::File::kCa, "the CA file", options.ca_file,
        [&](const char* path) { return SSL_CTX_load_verify_file(context, path); });
  }
  // A key is checked against its certificate, so it cannot be checked without one.
  if (!options.certificate_file.empty() && !options.key_file.empty() &&
      use(TlsProblem::File::kCertificate, "the certificate file", options.certificate_file,
          [&](const char* path) { return SSL_CTX_use_certificate_chain_file(context, path); })) {
    use(TlsProblem::File::kKey, "the key file", options.key_file, [&](const char* path) {
      const bool is_key = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1;
      // If the key has another type than the certificate's key (RSA and EC, for example), OpenSSL
      // loads it without an error, so SSL_CTX_check_private_key is needed to find that out.
      is_of_another = is_key ? SSL_CTX_check_private_key(context) != 1
                             : Is(ERR_peek_error(), ERR_LIB_X509, X509_R_KEY_VALUES_MISMATCH);
      return is_key && !is_of_another ? 1 : 0;
    });
  }
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  return problems;
}

TlsOptions FilesOf(const TlsServerOptions::Certificate& certificate) {
  return {.ca_file = {},
          .certificate_file = certificate.certificate_file,
          .key_file = certificate.key_file};
}

// Gives the connection another certificate, and leaves all else as it is. SSL_set_SSL_CTX would
// take the trusted authorities and the callbacks of the other context too.
bool UseCertificateOf(const SSL_CTX* other, SSL* ssl) {
  STACK_OF(X509)* chain = nullptr;
  // Expands the macro SSL_CTX_get0_chain_certs.
  SSL_CTX_ctrl(const_cast<SSL_CTX*>(other), SSL_CTRL_GET_CHAIN_CERTS, 0, &chain);
  SSL_certs_clear(ssl);  // otherwise a certificate whose key is of another kind would stay
  return SSL_use_cert_and_key(ssl, SSL_CTX_get0_certificate(other), SSL_CTX_get0_privatekey(other),
                              chain, 1) == 1;
}

absl::Status FirstOf(const std::vector<TlsProblem>& problems) {
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems[0].what);
}

}  // namespace

std::vector<TlsProblem> ProblemsOfFiles(const TlsOptions& options) {
  return LoadFiles(options, NewContext(TLS_method()).get());
}

std::vector<TlsProblem> ProblemsOfFiles(const TlsServerOptions& options) {
  std::vector<TlsProblem> problems;
  const auto add = [&](const TlsOptions& files) {
    for (TlsProblem& problem : ProblemsOfFiles(files)) problems.push_back(std::move(problem));
  };
  for (const TlsServerOptions::Certificate& certificate : options.certificates)
    add(FilesOf(certificate));
  add({.ca_file = options.client_ca_file});
  return problems;
}

struct TlsContext::State {
  explicit State(bool for_server)
      : is_server(for_server),
        context(NewContext(for_server ? TLS_server_method() : TLS_client_method())) {
    SSL_CTX* const native = context.get();
    SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
    // OpenSSL must not treat an end without close_notify as an error, because nothing could be sent
    // afterwards: TlsTransport judges it. Renegotiation is off, because clients could make the
    // server work with it.
    SSL_CTX_set_options(native,
                        SSL_OP_ALL | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
    // A write may be retried from another buffer, and an idle connection keeps no buffers.
    SSL_CTX_set_mode(native, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS);
    // One read of the socket takes whole records, instead of one read for the header and one for
    // the body of each.
    SSL_CTX_set_read_ahead(native, 1);
  }

  void ServeWith(const TlsServerOptions& options, std::shared_ptr<TicketKeys> ticket_keys);
  absl::Status LoadCertificates(const TlsServerOptions& options);
  static int ChooseCertificate(SSL* ssl, int* alert, void* state);
  static int CheckClient(int verified, X509_STORE_CTX* store);
  static int UseTicketKey(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                          EVP_MAC_CTX* mac, int encrypts);

  const bool is_server;
  // For all connections, so that their settings cannot differ. Has a server's first certificate.
  Context context;
  // Each only holds a further certificate, with its key and chain.
  std::vector<Context> others;
  std::vector<std::string> certificate_files;  // of `context`, and of `others`
  std::string ca_file;                         // of the peers' authorities; empty: the system's
  std::vector<std::string> client_names;
  std::vector<std::string_view> protocols{kAlpnHttp11};  // of a server, the preferred one first
  bool needs_http2 = false;                              // of a client
  std::shared_ptr<TicketKeys> tickets;                   // of a server
};

absl::Status TlsContext::State::LoadCertificates(const TlsServerOptions& options) {
  if (options.certificates.empty()) {
    return absl::InvalidArgumentError("a TLS server needs a certificate and its key; give both");
  }
  for (const TlsServerOptions::Certificate& files : options.certificates)
    certificate_files.push_back(files.certificate_file);
  for (size_t i = 0; i < options.certificates.size(); ++i) {
    const TlsServerOptions::Certificate& files = options.certificates[i];
    if (files.certificate_file.empty() || files.key_file.empty()) {
      return absl::InvalidArgumentError("a TLS server needs a certificate and its key; give both");
    }
    Context& into = i == 0 ? context : others.emplace_back(NewContext(TLS_server_method()));
    HEADGATE_RETURN_IF_ERROR(FirstOf(LoadFiles(FilesOf(files), into.get())));
  }
  return FirstOf(LoadFiles({.ca_file = options.client_ca_file}, context.get()));
}

void TlsContext::State::ServeWith(const TlsServerOptions& options,
                                  std::shared_ptr<TicketKeys> ticket_keys) {
  SSL_CTX* const native = context.get();
  if (options.http2) protocols.insert(protocols.begin(), kAlpnHttp2);
  SSL_CTX_set_alpn_select_cb(native, &ChooseProtocol, &protocols);
  if (!others.empty()) {
    // Expands the macro SSL_CTX_set_tlsext_servername_callback.
    SSL_CTX_callback_ctrl(native, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                          reinterpret_cast<void (*)()>(&ChooseCertificate));
    SSL_CTX_set_tlsext_servername_arg(native, this);
  }
  tickets = std::move(ticket_keys);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(native, &UseTicketKey);
  // The clients keep the sessions (tickets), so the server caches none.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  ca_file = options.client_ca_file;
  if (ca_file.empty()) return;
  // A ticket could outlive a revocation or a change of the authorities: each connection must show
  // its certificate again.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  client_names = options.client_names;
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &CheckClient);
}

int TlsContext::State::ChooseCertificate(SSL* ssl, int* alert, void* state) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_OK;
  auto& self = *static_cast<State*>(state);
  const auto is_for = [&](const Context& candidate) {
    X509* const certificate = SSL_CTX_get0_certificate(candidate.get());
    return X509_check_host(certificate, name, 0, 0, nullptr) == 1;
  };
  if (is_for(self.context)) return SSL_TLSEXT_ERR_OK;
  for (const Context& other : self.others) {
    if (!is_for(other)) continue;
    if (UseCertificateOf(other.get(), ssl)) break;
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  return SSL_TLSEXT_ERR_OK;
}

int TlsContext::State::CheckClient(int verified, X509_STORE_CTX* store) {
  if (verified != 1 || X509_STORE_CTX_get_error_depth(store) != 0) return verified;
  const auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto* const self = static_cast<const State*>(SSL_get_app_data(ssl));
  if (self->client_names.empty()) return 1;
  if (HasOneOf(X509_STORE_CTX_get_current_cert(store), self->client_names)) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
  return 0;
}

// For SSL_CTX_set_tlsext_ticket_key_evp_cb: 1 uses the key, 2 also asks for a new ticket, and 0
// knows no key, so that the client makes a full handshake.
int TlsContext::State::UseTicketKey(SSL* ssl, unsigned char* name, unsigned char* iv,
                                    EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypts) {
  TicketKeys& keys = *static_cast<const State*>(SSL_get_app_data(ssl))->tickets;
  const base::BootTime now = base::SystemClock().BootNow();
  TicketKey current = keys.Current(now);
  std::optional<TicketKey> key = current;
  if (encrypts != 0) {
    std::copy(current.name.begin(), current.name.end(), name);
    if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1) return -1;
  } else {
    key = keys.Find(name, now);
    if (!key) return 0;
  }
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 3> mac_settings = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac.data(), key->mac.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  if (EVP_CipherInit_ex2(cipher, EVP_aes_256_cbc(), key->cipher.data(), iv, encrypts, nullptr) !=
          1 ||
      EVP_MAC_CTX_set_params(mac, mac_settings.data()) != 1) {
    return -1;
  }
  return *key == current ? 1 : 2;
}

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsContext::~TlsContext() = default;

std::vector<std::string> TlsContext::CertificatesOutOfDate(base::WallTime now) const {
  std::vector<std::string> problems;
  const time_t now_s = now.ns / 1'000'000'000;
  for (size_t i = 0; i < state_->certificate_files.size(); ++i) {
    const Context& context = i == 0 ? state_->context : state_->others[i - 1];
    const X509* const certificate = SSL_CTX_get0_certificate(context.get());
    std::string why = WhyOutOfDate(certificate, state_->certificate_files[i], now_s);
    if (!why.empty()) problems.push_back(std::move(why));
  }
  if (state_->ca_file.empty()) return problems;
  X509_STORE* const authorities = SSL_CTX_get_cert_store(state_->context.get());
  for (std::string& why : AuthoritiesOutOfDate(authorities, state_->ca_file, now_s))
    problems.push_back(std::move(why));
  return problems;
}

bool TlsContext::is_server() const { return state_->is_server; }

bool TlsContext::needs_http2() const { return state_->needs_http2; }

ssl_st* TlsContext::NewConnection() const {
  SSL* const ssl = SSL_new(state_->context.get());
  HEADGATE_CHECK(ssl != nullptr);
  SSL_set_app_data(ssl, state_.get());
  return ssl;
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Load(const TlsOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client certificate needs its key and a key its certificate; give both");
  }
  auto state = std::make_unique<State>(false);
  HEADGATE_RETURN_IF_ERROR(FirstOf(LoadFiles(options, state->context.get())));
  if (!options.certificate_file.empty())
    state->certificate_files.push_back(options.certificate_file);
  state->ca_file = options.ca_file;
  SSL_CTX_set_verify(state->context.get(), SSL_VERIFY_PEER, nullptr);
  if (options.ca_file.empty()) SSL_CTX_set_default_verify_paths(state->context.get());
  if (options.http2) {
    state->needs_http2 = true;
    constexpr std::array<unsigned char, 3> kOffer = {2, 'h', '2'};
    HEADGATE_CHECK(SSL_CTX_set_alpn_protos(state->context.get(), kOffer.data(), kOffer.size()) ==
                   0);
  }
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::LoadServer(
    const TlsServerOptions& options, std::shared_ptr<TicketKeys> ticket_keys) {
  auto state = std::make_unique<State>(true);
  HEADGATE_RETURN_IF_ERROR(state->LoadCertificates(options));
  state->ServeWith(options, std::move(ticket_keys));
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

}  // namespace headgate::net
