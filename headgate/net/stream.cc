#include "headgate/net/stream.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

namespace headgate::net {
namespace {

namespace ip = boost::asio::ip;
namespace ssl = boost::asio::ssl;
using Socket = boost::asio::generic::stream_protocol::socket;
using SocketEndpoint = boost::asio::generic::stream_protocol::endpoint;
using ErrorCode = boost::system::error_code;

// One read's worth. A thousand replies of a pipeline fit.
constexpr size_t kReadBytesMax = size_t{64} << 10;
// Capacity that the write buffers keep between writes.
constexpr size_t kOutputCapacityKept = size_t{1} << 20;

}  // namespace

std::string StreamTarget::ToString() const {
  if (!unix_path.empty()) return fmt::format("unix:{}", unix_path);
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

// ---- TLS

struct TlsContext::State {
  ssl::context context{ssl::context::tls_client};
};

TlsContext::TlsContext(std::unique_ptr<State> state) : state_(std::move(state)) {}

TlsContext::~TlsContext() = default;

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Load(const TlsOptions& options) {
  auto state = std::make_unique<State>();
  ssl::context& context = state->context;
  ErrorCode error;
  const auto bad = [&](std::string_view what, const std::string& file) {
    return absl::InvalidArgumentError(fmt::format("{} '{}' cannot be used: {}", what, file, error.message()));
  };
  if (options.certificate_file.empty() != options.key_file.empty()) {
    return absl::InvalidArgumentError("a client certificate needs its key and a key its certificate; give both");
  }
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  context.set_verify_mode(ssl::verify_peer);
  if (options.ca_file.empty()) {
    context.set_default_verify_paths(error);
  } else if (context.load_verify_file(options.ca_file, error)) {
    return bad("the CA file", options.ca_file);
  }
  if (!options.certificate_file.empty()) {
    if (context.use_certificate_chain_file(options.certificate_file, error)) {
      return bad("the certificate file", options.certificate_file);
    }
    if (context.use_private_key_file(options.key_file, ssl::context::pem, error)) {
      return bad("the key file", options.key_file);
    }
  }
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(state)));
}

// ---- One connection's life. Pending operations hold it; a stream that has let go of it hears nothing more.

struct Stream::Life : std::enable_shared_from_this<Stream::Life> {
  Life(Stream& owning_stream, const StreamTarget& stream_target)
      : stream(&owning_stream),
        target(stream_target),
        io(owning_stream.loop_.io()),
        resolver(io),
        socket(io),
        deadline(io) {}

  void Start() {
    deadline.expires_after(std::chrono::ceil<std::chrono::steady_clock::duration>(stream->options_.connect_timeout));
    deadline.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error) self->OnDeadline();
    });
    if (!target.unix_path.empty()) {
      addresses.emplace_back(boost::asio::local::stream_protocol::endpoint(target.unix_path));
      return TryNextAddress();
    }
    ErrorCode not_an_address;
    if (const auto address = ip::make_address(target.host, not_an_address); !not_an_address) {
      addresses.emplace_back(ip::tcp::endpoint(address, target.port));
      return TryNextAddress();
    }
    // Never looked up (RFC 6761): a machine may lack the file that says what everybody knows.
    if (target.host == "localhost") {
      addresses.emplace_back(ip::tcp::endpoint(ip::address_v4::loopback(), target.port));
      addresses.emplace_back(ip::tcp::endpoint(ip::address_v6::loopback(), target.port));
      return TryNextAddress();
    }
    resolver.async_resolve(target.host, std::to_string(target.port), ip::resolver_base::numeric_service,
                           [self = shared_from_this()](const ErrorCode& error, const auto& results) {
                             if (self->stream == nullptr) return;
                             if (error) return self->Fail(error.message());
                             for (const auto& result : results) self->addresses.emplace_back(result.endpoint());
                             self->TryNextAddress();
                           });
  }

  void OnDeadline() {
    // It may have been due already when the connection came.
    if (stream == nullptr || connected) return;
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(stream->options_.connect_timeout).count();
    if (!tls) return Fail(fmt::format("no connection within {} ms", ms));
    Fail(fmt::format("it accepted, and did not answer to TLS within {} ms; does it speak TLS on this port?", ms));
  }

  void TryNextAddress() {
    ErrorCode ignored;
    socket.close(ignored);
    socket.async_connect(addresses[next_address++], [self = shared_from_this()](const ErrorCode& error) {
      if (self->stream == nullptr) return;
      if (!error) return self->OnSocketConnected();
      if (self->next_address < self->addresses.size()) return self->TryNextAddress();
      self->Fail(error.message());
    });
  }

  void OnSocketConnected() {
    if (target.unix_path.empty()) {
      const int on = 1;
      ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    ErrorCode ignored;
    socket.non_blocking(true, ignored);
    if (stream->options_.tls == nullptr) return OnReady();
    const std::string& name = stream->options_.server_name.empty() ? target.host : stream->options_.server_name;
    tls.emplace(socket, stream->options_.tls->state_->context);
    tls->set_verify_callback(ssl::host_name_verification(name), ignored);
    ErrorCode not_an_address;
    ip::make_address(name, not_an_address);
    if (not_an_address) {
      // As the macro SSL_set_tlsext_host_name.
      SSL_ctrl(tls->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(name.c_str()));
    }
    tls->async_handshake(ssl::stream_base::client, [self = shared_from_this()](const ErrorCode& error) {
      if (self->stream == nullptr) return;
      if (error) return self->Fail(fmt::format("TLS: {}", error.message()));
      self->OnReady();
    });
  }

  void OnReady() {
    deadline.cancel();
    connected = true;
    stream->owner_.OnConnected();
    if (stream != nullptr) Read();
  }

  void Read() {
    const auto done = [self = shared_from_this()](const ErrorCode& error, size_t count) {
      if (self->stream != nullptr) self->OnRead(error, count);
    };
    if (tls) {
      tls->async_read_some(boost::asio::buffer(input), done);
    } else {
      socket.async_read_some(boost::asio::buffer(input), done);
    }
  }

  void OnRead(const ErrorCode& error, size_t count) {
    if (error) {
      return Fail(error == boost::asio::error::eof ? "the other end closed the connection" : error.message());
    }
    stream->bytes_read_ += count;
    stream->owner_.OnBytes(std::string_view(input.data(), count));
    if (stream != nullptr) Read();
  }

  // The reader reports a connection that is gone.
  void Flush() {
    if (!connected || writing_under_way || (stream->output_.empty() && writing.empty())) return;
    if (tls) return WriteTls();
    std::string_view rest =
        writing.empty() ? std::string_view(stream->output_) : std::string_view(writing).substr(written);
    const ssize_t count = ::send(socket.native_handle(), rest.data(), rest.size(), MSG_NOSIGNAL);
    const size_t sent = count > 0 ? static_cast<size_t>(count) : 0;
    stream->bytes_written_ += sent;
    if (sent == rest.size()) {
      const bool more = !writing.empty() && !stream->output_.empty();
      Release(writing.empty() ? stream->output_ : writing);
      written = 0;
      return more ? Flush() : void();
    }
    if (writing.empty()) {
      writing.swap(stream->output_);
      written = 0;
    }
    written += sent;
    if (count < 0 && errno != EAGAIN && errno != EINTR) return;
    writing_under_way = true;
    socket.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorCode&) {
      self->writing_under_way = false;
      if (self->stream != nullptr) self->Flush();
    });
  }

  void WriteTls() {
    writing.swap(stream->output_);
    writing_under_way = true;
    boost::asio::async_write(*tls, boost::asio::buffer(writing),
                             [self = shared_from_this()](const ErrorCode& error, size_t count) {
                               self->writing_under_way = false;
                               Release(self->writing);
                               if (self->stream == nullptr || error) return;
                               self->stream->bytes_written_ += count;
                               self->Flush();
                             });
  }

  static void Release(std::string& buffer) {
    buffer.clear();
    if (buffer.capacity() > kOutputCapacityKept) std::string().swap(buffer);
  }

  // Tells the owner, once.
  void Fail(std::string_view why) {
    Stream* const told = stream;
    if (told == nullptr) return;
    LetGo();
    told->output_.clear();
    told->owner_.OnClosed(absl::UnavailableError(fmt::format("{}: {}", target.ToString(), why)));
  }

  void LetGo() {
    stream = nullptr;
    ErrorCode ignored;
    deadline.cancel();
    resolver.cancel();
    socket.close(ignored);
  }

  Stream* stream;  // null: nobody cares any more
  const StreamTarget target;
  boost::asio::io_context& io;
  ip::tcp::resolver resolver;
  Socket socket;
  std::optional<ssl::stream<Socket&>> tls;
  boost::asio::steady_timer deadline;
  std::vector<SocketEndpoint> addresses;
  size_t next_address = 0;
  bool connected = false;
  bool writing_under_way = false;
  std::string writing;  // what the system has not taken yet
  size_t written = 0;   // of `writing`
  std::array<char, kReadBytesMax> input;
};

Stream::Stream(EventLoop& loop, Owner& owner, const Options& options) : loop_(loop), owner_(owner), options_(options) {}

Stream::~Stream() { Close(); }

void Stream::Connect(const StreamTarget& target) {
  Close();
  life_ = std::make_shared<Life>(*this, target);
  life_->Start();
}

void Stream::Close() {
  output_.clear();
  if (life_ == nullptr) return;
  life_->LetGo();
  life_.reset();
}

void Stream::Flush() {
  if (life_ != nullptr && life_->stream != nullptr) life_->Flush();
}

size_t Stream::unsent_bytes() const {
  if (life_ == nullptr) return 0;
  return output_.size() + life_->writing.size() - life_->written;
}

}  // namespace headgate::net
