// Generates load for a server that speaks CL.THROTTLE, over several connections with several
// commands in flight on each. Keys are drawn evenly or by Zipf's law. It sends as fast as possible
// or at a fixed pace. Prints one line of JSON: the number of decisions and denials, the rate, and
// the latencies.
//
// At a fixed pace, the latency of a command counts from the time when it was due, so that a stalled
// server cannot hide the stall by slowing the load (see G. Tene, "How NOT to measure latency").
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

struct Options {
  uint16_t port = 0;
  uint32_t connections = 64;
  uint32_t depth = 1;
  double seconds = 3;
  double warm_up_seconds = 0.5;
  double rate = 0;  // commands per second over all connections; 0: as fast as possible
  uint32_t keys = 100'000;
  double zipf = 0;  // exponent; 0: all keys alike
  std::string prefix = "user:";
  std::string limit = "1000000000 1000000000 60";  // burst, count, period
  uint64_t seed = 1;
};

[[noreturn]] void Die(std::string_view what) {
  fmt::print(stderr, "throttle_load: {}\n", what);
  std::exit(1);
}

// Draws the number of a key.
class Keys {
 public:
  explicit Keys(const Options& options) : random_(options.seed), count_(options.keys) {
    if (options.zipf == 0) return;
    double sum = 0;
    for (uint32_t k = 1; k <= options.keys; ++k) sums_.push_back(sum += std::pow(k, -options.zipf));
  }

  uint64_t Next() {
    if (sums_.empty()) return random_.Below(count_);
    const double at = static_cast<double>(random_.Next() >> 11) * 0x1p-53 * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, at);
    return static_cast<uint64_t>(found - sums_.begin());
  }

 private:
  base::Random random_;
  const uint64_t count_;
  std::vector<double> sums_;
};

// A histogram of latencies with two significant digits: each bucket is less than 1 % wide.
class Times {
 public:
  void Add(nanoseconds time) {
    const double ns = std::max<double>(1, static_cast<double>(time.count()));
    const auto bucket = static_cast<size_t>(std::log2(ns) * kPerOctave);
    ++counts_[std::min(bucket, counts_.size() - 1)];
    ++total_;
  }
  // Latencies are in microseconds.
  double Quantile(double q) const {
    auto rest = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total_)));
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (rest <= counts_[i]) return std::exp2(static_cast<double>(i + 1) / kPerOctave) / 1e3;
      rest -= counts_[i];
    }
    return 0;
  }

 private:
  static constexpr double kPerOctave = 100;
  std::array<uint64_t, 4000> counts_{};
  uint64_t total_ = 0;
};

struct Connection {
  net::FileDescriptor socket;
  std::string output;
  std::deque<Clock::time_point> due;  // one for each command in flight
  uint32_t lines = 0;                 // of the reply being read
  bool at_line_start = true;
  bool denied = false;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options), keys_(options), tail_(Tail(options.limit)) {
    epoll_ = net::FileDescriptor(epoll_create1(0));
    for (uint32_t i = 0; i < options.connections; ++i) Connect();
  }

  void Run() {
    const Clock::time_point begin = Clock::now();
    measured_from_ = begin + Nanoseconds(options_.warm_up_seconds);
    const Clock::time_point end = measured_from_ + Nanoseconds(options_.seconds);
    next_due_ = begin;
    if (options_.rate == 0) {
      for (const auto& connection : connections_) Refill(*connection, begin);
    }
    Clock::time_point now = begin;
    while (now < end) {
      if (options_.rate > 0) SendDue(now);
      Wait(end, now);
      now = Clock::now();
    }
    const double seconds = std::chrono::duration<double>(now - measured_from_).count();
    fmt::print(
        R"({{"decisions":{},"denied":{},"seconds":{:.3f},"per_second":{:.0f},"p50_us":{:.1f},"p99_us":{:.1f},)"
        R"("p999_us":{:.1f}}})"
        "\n",
        decisions_, denied_, seconds, static_cast<double>(decisions_) / seconds,
        times_.Quantile(0.5), times_.Quantile(0.99), times_.Quantile(0.999));
  }

 private:
  static nanoseconds Nanoseconds(double seconds) {
    return nanoseconds(static_cast<int64_t>(seconds * 1e9));
  }

  // The arguments of a command after its key.
  static std::string Tail(const std::string& limit) {
    std::string tail;
    for (size_t at = 0; at < limit.size();) {
      const size_t end = std::min(limit.find(' ', at), limit.size());
      tail += fmt::format("${}\r\n{}\r\n", end - at, limit.substr(at, end - at));
      at = end + 1;
    }
    return tail;
  }

  void Connect() {
    auto connection = std::make_unique<Connection>();
    connection->socket = net::FileDescriptor(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = connection->socket.get();
    const int one = 1;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      Die(std::strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = connection.get()}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    connections_.push_back(std::move(connection));
  }

  void Append(Connection& connection, Clock::time_point due) {
    const std::string key = fmt::format("{}{}", options_.prefix, keys_.Next());
    fmt::format_to(std::back_inserter(connection.output),
                   "*5\r\n$11\r\nCL.THROTTLE\r\n${}\r\n{}\r\n{}", key.size(), key, tail_);
    connection.due.push_back(due);
  }

  void Flush(Connection& connection) {
    // A client that waits for its replies has few commands in flight, so the socket takes them all.
    const ssize_t sent =
        send(connection.socket.get(), connection.output.data(), connection.output.size(), 0);
    if (sent != static_cast<ssize_t>(connection.output.size()))
      Die("the server does not read the commands");
    connection.output.clear();
  }

  void Refill(Connection& connection, Clock::time_point now) {
    while (connection.due.size() < options_.depth) Append(connection, now);
    Flush(connection);
  }

  // Sends the commands that are due by now, over the connections in turn. A command waits behind
  // earlier ones on its connection.
  void SendDue(Clock::time_point now) {
    const nanoseconds gap = Nanoseconds(1 / options_.rate);
    for (; next_due_ <= now; next_due_ += gap) {
      Connection& connection = *connections_[next_connection_++ % connections_.size()];
      Append(connection, next_due_);
      Flush(connection);
    }
  }

  void Wait(Clock::time_point end, Clock::time_point now) {
    const Clock::time_point until = options_.rate > 0 ? std::min(end, next_due_) : end;
    const auto left = std::max<int64_t>(0, (until - now).count());
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    std::array<epoll_event, 256> events;
    const int count = epoll_pwait2(epoll_.get(), events.data(), events.size(), &timeout, nullptr);
    for (int i = 0; i < count; ++i)
      Read(*static_cast<Connection*>(events[static_cast<size_t>(i)].data.ptr));
  }

  void Read(Connection& connection) {
    std::array<char, 1 << 16> buffer;
    const ssize_t size = recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) Die("the server closed a connection");
    const Clock::time_point now = Clock::now();
    for (const char c : std::string_view(buffer.data(), static_cast<size_t>(size))) {
      if (connection.at_line_start && c == '-') Die("the server answered with an error");
      // Parses a reply: "*5", then ":0" or ":1", then four more numbers.
      if (connection.lines == 1 && c == '1') connection.denied = true;
      connection.at_line_start = c == '\n';
      if (c == '\n' && ++connection.lines == 6) OnReply(connection, now);
    }
    if (options_.rate == 0) Refill(connection, now);
  }

  void OnReply(Connection& connection, Clock::time_point now) {
    const Clock::time_point due = connection.due.front();
    connection.due.pop_front();
    connection.lines = 0;
    const bool denied = std::exchange(connection.denied, false);
    if (now < measured_from_) return;
    ++decisions_;
    denied_ += denied ? 1 : 0;
    times_.Add(now - due);
  }

  const Options options_;
  Keys keys_;
  const std::string tail_;
  net::FileDescriptor epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  size_t next_connection_ = 0;
  Clock::time_point measured_from_;
  Clock::time_point next_due_;
  uint64_t decisions_ = 0;
  uint64_t denied_ = 0;
  Times times_;
};

}  // namespace

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Load for CL.THROTTLE");
  app.add_option("--port", options.port)->required();
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 4096));
  app.add_option("--depth", options.depth, "commands in flight per connection, if no rate is given")
      ->check(CLI::Range(1, 256));
  app.add_option("--seconds", options.seconds);
  app.add_option("--warm-up", options.warm_up_seconds, "seconds that are not measured");
  app.add_option("--rate", options.rate, "commands a second; 0: as fast as possible");
  app.add_option("--keys", options.keys)->check(CLI::Range(1, 100'000'000));
  app.add_option("--zipf", options.zipf, "exponent; 0: all keys alike");
  app.add_option("--prefix", options.prefix, "prefix of the keys");
  app.add_option("--limit", options.limit, "burst, count and period");
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  Load(options).Run();
  return 0;
}

}  // namespace headgate::bench

int main(int argc, char** argv) { return headgate::bench::Main(argc, argv); }
