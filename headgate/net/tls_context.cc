#include "headgate/net/tls_context.h"

#include <fmt/format.h>

#include <boost/asio/ssl/context.hpp>
#include <string_view>
#include <utility>

namespace headgate::net {
namespace {

namespace ssl = boost::asio::ssl;

std::vector<TlsProblem> LoadFiles(const TlsOptions& options, ssl::context& context) {
  std::vector<TlsProblem> problems;
  boost::system::error_code error;
  const auto bad = [&](TlsProblem::File file, std::string_view what, const std::string& path) {
    problems.push_back(
        {file, fmt::format("{} '{}' cannot be used: {}", what, path, error.message())});
  };
  if (!options.ca_file.empty() && context.load_verify_file(options.ca_file, error)) {
    bad(TlsProblem::File::kCa, "the CA file", options.ca_file);
  }
  if (options.certificate_file.empty() || options.key_file.empty()) return problems;
  if (context.use_certificate_chain_file(options.certificate_file, error)) {
    bad(TlsProblem::File::kCertificate, "the certificate file", options.certificate_file);
  } else if (context.use_private_key_file(options.key_file, ssl::context::pem, error)) {
    // A key is checked against its certificate, so it cannot be checked without one.
    bad(TlsProblem::File::kKey, "the key file", options.key_file);
  }
  return problems;
}

absl::Status FirstOf(const std::vector<TlsProblem>& problems) {
  return problems.empty() ? absl::OkStatus() : absl::InvalidArgumentError(problems[0].what);
}

}  // namespace

std::vector<TlsProblem> ProblemsOfFiles(const TlsOptions& options) {
  ssl::context context(ssl::context::tls);
  return LoadFiles(options, context);
}

struct TlsContext::State {
  explicit State(bool for_server)
      : is_server(for_server),
        context(for_server ? ssl::context::tls_server : ssl::context::tls_client) {
    context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                        ssl::context::no_tlsv1_1);
    // The protocols above define themselves where a message ends, so an end without close_notify
    // truncates nothing.
    SSL_CTX_set_options(context.native_handle(), SSL_OP_IGNORE_UNEXPECTED_EOF);
    // A write may be retried from another buffer, and an idle connection keeps no buffers.
    SSL_CTX_set_mode(context.native_handle(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                                  SSL_MODE_RELEASE_BUFFERS);
  }

  const bool is_server;
  ssl::context context;
};

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsContext::~TlsContext() = default;

ssl_ctx_st* TlsContext::native() const { return state_->context.native_handle(); }

bool TlsContext::is_server() const { return state_->is_server; }

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Load(const TlsOptions& options) {
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client certificate needs its key and a key its certificate; give both");
  }
  auto state = std::make_unique<State>(false);
  HEADGATE_RETURN_IF_ERROR(FirstOf(LoadFiles(options, state->context)));
  state->context.set_verify_mode(ssl::verify_peer);
  boost::system::error_code ignored;
  if (options.ca_file.empty()) state->context.set_default_verify_paths(ignored);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::LoadServer(const TlsOptions& options) {
  if (options.certificate_file.empty() || options.key_file.empty()) {
    return absl::InvalidArgumentError("a TLS server needs a certificate and its key; give both");
  }
  auto state = std::make_unique<State>(true);
  HEADGATE_RETURN_IF_ERROR(FirstOf(LoadFiles(options, state->context)));
  if (!options.ca_file.empty())
    state->context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

}  // namespace headgate::net
