// For tests: a real HTTP server on a free port, whose answers the test chooses. It can also keep
// silent, or break the connection. One thread per connection.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/client/http/origin.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::client::http {

struct RigRequest {
  std::string method, target, body;
  std::map<std::string, std::string> fields;  // names in lower case
};

struct RigReply {
  int status = 200;
  std::string body{};
  std::vector<std::string> fields{};
  bool breaks = false;     // breaks the connection instead of answering
  bool is_silent = false;  // never answers
  bool closes = false;     // closes the connection after the answer, and says so
  bool closes_silently = false;
};

class HttpRig {
 public:
  using Answerer = std::function<RigReply(const RigRequest& request)>;

  // `answer` is called on the threads of the connections, one at a time. With a certificate and its
  // key, as PEM files, the server speaks TLS.
  explicit HttpRig(Answerer answer, const std::string& certificate = "",
                   const std::string& key = "")
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!certificate.empty()) {
      std::signal(SIGPIPE, SIG_IGN);  // OpenSSL raises it if the client hangs up
      tls_.reset(SSL_CTX_new(TLS_server_method()));
      EXPECT_EQ(SSL_CTX_use_certificate_file(tls_.get(), certificate.c_str(), SSL_FILETYPE_PEM), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(tls_.get(), key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 100), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~HttpRig() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    CloseConnections();
    for (Served& served : served_) served.thread.join();
  }
  HttpRig(const HttpRig&) = delete;

  uint16_t port() const { return port_; }
  Origin origin(std::string host = "127.0.0.1") const {
    return {.tls = tls_ != nullptr, .host = std::move(host), .port = port_};
  }
  std::string url() const { return origin().ToString(); }
  uint32_t connections() const { return connections_; }
  std::vector<RigRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Does not count the requests that only warm up a connection (GET /).
  size_t requests_seen() const {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const RigRequest& request : requests_)
      count += request.method != "GET" || request.target != "/";
    return count;
  }
  void CloseConnections() {
    const std::lock_guard lock(mutex_);
    for (const Served& served : served_) ::shutdown(served.socket.get(), SHUT_RDWR);
  }

 private:
  struct Served {
    net::FileDescriptor socket;
    std::thread thread;
  };
  struct Stream {
    int fd;
    SSL* ssl;
    std::string bytes;
    ~Stream() { SSL_free(ssl); }
    bool ReadMore() {
      char some[4096];
      const ssize_t size =
          ssl != nullptr ? SSL_read(ssl, some, sizeof some) : ::recv(fd, some, sizeof some, 0);
      if (size > 0) bytes.append(some, static_cast<size_t>(size));
      return size > 0;
    }
    void Write(const std::string& text) const {
      if (ssl != nullptr) {
        SSL_write(ssl, text.data(), static_cast<int>(text.size()));
      } else {
        (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      }
    }
  };

  void Accept() {
    while (true) {
      net::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) return;
      ++connections_;
      const std::lock_guard lock(mutex_);
      Served& served = served_.emplace_back();
      served.socket = std::move(socket);
      served.thread = std::thread([this, fd = served.socket.get()] {
        Serve(fd);
        ::shutdown(fd, SHUT_RDWR);
      });
    }
  }
  void Serve(int fd) {
    Stream stream{.fd = fd, .ssl = nullptr, .bytes = {}};
    if (tls_ != nullptr) {
      stream.ssl = SSL_new(tls_.get());
      SSL_set_fd(stream.ssl, fd);
      if (SSL_accept(stream.ssl) != 1) return;
    }
    RigRequest request;
    while (Read(stream, request)) {
      RigReply reply;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      {
        const std::lock_guard lock(answer_mutex_);
        reply = answer_(request);
      }
      if (reply.breaks) return;
      if (reply.is_silent) continue;
      std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " X\r\n";
      for (const std::string& field : reply.fields) text += field + "\r\n";
      if (reply.closes) text += "Connection: close\r\n";
      text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body;
      stream.Write(text);
      if (reply.closes || reply.closes_silently) return;
    }
  }
  static bool Read(Stream& stream, RigRequest& request) {
    size_t head_end;
    while ((head_end = stream.bytes.find("\r\n\r\n")) == std::string::npos)
      if (!stream.ReadMore()) return false;
    request = {};
    const std::string head = stream.bytes.substr(0, head_end + 2);
    size_t at = head.find("\r\n");
    const std::string line = head.substr(0, at);
    request.method = line.substr(0, line.find(' '));
    request.target = line.substr(request.method.size() + 1);
    request.target.resize(request.target.find(' '));
    for (at += 2; at < head.size();) {
      const size_t end = head.find("\r\n", at);
      const size_t colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = base::ToLower(c);
      request.fields[name] =
          base::Trimmed(std::string_view(head).substr(colon + 1, end - colon - 1));
      at = end + 2;
    }
    const std::string& length = request.fields["content-length"];
    const size_t body_size = length.empty() ? 0 : std::stoul(length);
    while (stream.bytes.size() < head_end + 4 + body_size)
      if (!stream.ReadMore()) return false;
    request.body = stream.bytes.substr(head_end + 4, body_size);
    stream.bytes.erase(0, head_end + 4 + body_size);
    return true;
  }

  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  const Answerer answer_;
  std::unique_ptr<SSL_CTX, FreeContext> tls_;
  const net::FileDescriptor listener_;
  uint16_t port_ = 0;
  std::atomic<uint32_t> connections_{0};
  std::mutex answer_mutex_;
  mutable std::mutex mutex_;
  std::list<Served> served_;  // guarded by mutex_, as is
  std::vector<RigRequest> requests_;
  std::thread acceptor_;
};

}  // namespace headgate::client::http
