#include "headgate/client/http/ask.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/client/http/exchange.h"
#include "headgate/net/name_lookup.h"

namespace headgate::client::http {
namespace {

using net::Endpoint;

std::string SystemError(long number) {
  return std::generic_category().message(static_cast<int>(number));
}

bool HasAddress(const Endpoint& endpoint) {
  return endpoint.kind == Endpoint::Kind::kIpv4 || endpoint.kind == Endpoint::Kind::kIpv6;
}

// The host as it is written in a URL.
std::string Bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// The name or the address that the certificate must have.
std::string NameOf(const ServerAccess& server) {
  if (!server.tls_name.empty()) return server.tls_name;
  return HasAddress(server.endpoint) ? server.endpoint.address : "localhost";
}

absl::Status Distrust(const ServerAccess& server, const Exchange& exchange,
                      const std::string& name) {
  long verified = X509_V_OK;
  curl_easy_getinfo(exchange.easy, CURLINFO_SSL_VERIFYRESULT, &verified);
  // libcurl itself compares the name, before it asks OpenSSL for this result. So if OpenSSL found
  // no error, the name was wrong.
  if (verified == X509_V_OK || verified == X509_V_ERR_UNSPECIFIED) {
    verified = net::AddressIn(NameOf(server), 0).empty() ? X509_V_ERR_HOSTNAME_MISMATCH
                                                         : X509_V_ERR_IP_ADDRESS_MISMATCH;
  }
  return absl::UnauthenticatedError(fmt::format("{}: certificate verify failed ({})", name,
                                                X509_verify_cert_error_string(verified)));
}

// Shortens a reason such as "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number" to
// its last part.
std::string HandshakeError(const std::string& reason) {
  if (reason.find("SSL_ERROR_SYSCALL") != reason.npos) return "the other end closed the connection";
  const size_t words = reason.rfind("::");
  return words == reason.npos ? reason : reason.substr(words + 2);
}

// The error for an exchange whose time is over.
absl::Status Late(const ServerAccess& server, const Exchange& exchange, const std::string& name,
                  long timeout_ms) {
  long connections = 0;  // whether or not a TLS handshake followed
  curl_easy_getinfo(exchange.easy, CURLINFO_NUM_CONNECTS, &connections);
  if (connections == 0)
    return absl::UnavailableError(fmt::format("cannot reach {}: {}", name, SystemError(ETIMEDOUT)));
  curl_off_t encrypted = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_APPCONNECT_TIME_T, &encrypted);
  if (server.tls && encrypted == 0) {
    return absl::UnavailableError(
        fmt::format("{}: it accepted the connection, but no TLS handshake came within {} ms; does "
                    "it speak TLS on this port?",
                    name, timeout_ms));
  }
  return absl::DeadlineExceededError(
      fmt::format("{}: no answer in {} ms; is it up?", name, timeout_ms));
}

absl::Status Failure(const ServerAccess& server, const Exchange& exchange, CURLcode code,
                     long timeout_ms) {
  const std::string name = server.endpoint.ToString();
  long system_error = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_OS_ERRNO, &system_error);
  const auto lost = [&](std::string_view what) {
    return absl::DataLossError(fmt::format("{}: {}", name, what));
  };
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      return absl::UnavailableError(
          fmt::format("cannot reach {}: {}", name,
                      system_error != 0 ? SystemError(system_error) : exchange.Reason(code)));
    case CURLE_OPERATION_TIMEDOUT:
      return Late(server, exchange, name, timeout_ms);
    case CURLE_PEER_FAILED_VERIFICATION:
      return Distrust(server, exchange, name);
    case CURLE_SSL_CONNECT_ERROR:
      return absl::UnavailableError(fmt::format(
          "{}: TLS: {}", name,
          system_error != 0 ? SystemError(system_error) : HandshakeError(exchange.Reason(code))));
    case CURLE_PARTIAL_FILE:
      return lost("the answer ends in the middle");
    case CURLE_WRITE_ERROR:
      if (exchange.head_ended)
        return lost(fmt::format("the answer is longer than {} bytes", kAnswerBytesMax));
      break;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      if (system_error != 0) return lost(SystemError(system_error));
      break;
    default:
      break;
  }
  return lost("the answer is not HTTP");
}

}  // namespace

absl::StatusOr<Answer> Ask(const ServerAccess& server, Request request, base::Duration timeout) {
  request.fields.emplace_back("Host: localhost");
  request.fields.emplace_back("Connection: close");
  if (!server.credential.empty())
    request.fields.push_back("Authorization: Bearer " + server.credential);
  const Endpoint& endpoint = server.endpoint;
  const std::string host = HasAddress(endpoint) ? Bracketed(endpoint.address) : "localhost";
  const std::string target = fmt::format("::{}:{}", host, endpoint.port);
  const long timeout_ms = Milliseconds(timeout);

  Exchange exchange;
  CURL* const easy = exchange.easy;
  exchange.Begin(std::move(request), kAnswerBytesMax);
  exchange.SetOptions(server.tls ? "https://" + Bracketed(NameOf(server)) : "http://localhost",
                      fmt::format("localhost:{}:127.0.0.1,[::1]", endpoint.port));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
  if (!server.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, server.ca_file.c_str());
  curl_slist* const connect_to = curl_slist_append(nullptr, target.c_str());
  if (endpoint.is_unix()) {
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, endpoint.address.c_str());
  } else {
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to);
  }
  const CURLcode code = curl_easy_perform(easy);  // ignores SIGPIPE meanwhile
  curl_slist_free_all(connect_to);
  // libcurl takes the end of the connection for the end of a head, too.
  if (code != CURLE_OK || !exchange.head_ended) return Failure(server, exchange, code, timeout_ms);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  exchange.answer.status = static_cast<int>(status);
  return std::move(exchange.answer);
}

absl::StatusOr<Answer> GetFrom(const ServerAccess& server, std::string target,
                               base::Duration timeout) {
  return Ask(server, {.method = "GET", .target = std::move(target)}, timeout);
}

absl::StatusOr<Answer> PostJson(const ServerAccess& server, std::string target, std::string body,
                                base::Duration timeout) {
  return Ask(server,
             {.method = "POST",
              .target = std::move(target),
              .fields = {"Content-Type: application/json"},
              .body = std::move(body)},
             timeout);
}

}  // namespace headgate::client::http
