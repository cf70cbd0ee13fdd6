// The fuzzer's bytes choose the events of a connection: calls, bytes of the server, ends, time. For
// any events in any order: each call is answered exactly once and in time, the calls in flight stay
// within their bounds, and a call that may have been sent is never sent again.
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/store/redis/connection.h"

namespace {

using namespace headgate;
using namespace headgate::store::redis;
using namespace std::chrono_literals;

constexpr size_t kInFlightMax = 5;
constexpr size_t kWaitingMax = 4;

class World final : public Connection::User {
 public:
  World()
      : connection_({.in_flight_max = kInFlightMax, .waiting_max = kWaitingMax}, *this, output_,
                    1) {
    connection_.Start(now_);
    Settle();
  }

  void Run(std::string_view bytes) {
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      Step(static_cast<unsigned char>(bytes[i]), static_cast<unsigned char>(bytes[i + 1]),
           bytes.substr(i + 2));
      Settle();
    }
    now_ += 1s;
    connection_.OnTime(now_);
    Settle();
    HEADGATE_CHECK(open_.empty());
  }

 private:
  enum class Socket : uint8_t { kNone, kConnecting, kConnected };

  void Step(unsigned event, unsigned argument, std::string_view rest) {
    switch (event % 9) {
      case 0: {
        PendingCall& call = *calls_.emplace_back(std::make_unique<PendingCall>());
        call.body = "x";
        call.deadline = now_ + argument * 1ms;
        HEADGATE_CHECK(open_.insert(&call).second);
        return connection_.Send(call, now_);
      }
      case 1:
        return Says(":1\r\n");
      case 2:
        return Says(rest.substr(0, argument % 16));
      case 3:
        return Says("%1\r\n+proto\r\n:3\r\n");
      case 4:
        return Says(argument % 4 == 0 ? "$10\r\nrole:slave\r\n" : "$11\r\nrole:master\r\n");
      case 5:
        now_ += argument * 1ms;
        if (connection_.wake_at() <= now_) connection_.OnTime(now_);
        return;
      case 6:
        if (socket_ == Socket::kConnecting) {
          socket_ = Socket::kConnected;
          connection_.OnConnected(now_);
        }
        return;
      case 7:
        if (socket_ == Socket::kNone) return;
        socket_ = Socket::kNone;
        return connection_.OnClosed(absl::UnavailableError("end"), now_);
      default:
        if (argument % 3 == 0) return connection_.Retire(absl::UnavailableError("retire"), now_);
        if (argument % 3 == 1) return connection_.Rest(now_);
        return connection_.Drop(absl::UnavailableError("drop"), now_);
    }
  }

  void Says(std::string_view bytes) {
    if (socket_ == Socket::kConnected && !bytes.empty()) connection_.OnBytes(bytes, now_);
  }

  void Settle() {
    const Connection::Action action = connection_.TakeAction();
    if (action == Connection::Action::kConnect) socket_ = Socket::kConnecting;
    if (action == Connection::Action::kDisconnect) socket_ = Socket::kNone;
    // The body of each call is one byte, x, which no greeting contains.
    if (socket_ == Socket::kConnected) {
      for (const char c : output_) sent_ += c == 'x' ? 1 : 0;
      output_.clear();
    }
    HEADGATE_CHECK(sent_ <= calls_.size());
    HEADGATE_CHECK(connection_.in_flight() <= kInFlightMax && connection_.waiting() <= kWaitingMax);
    HEADGATE_CHECK(connection_.in_flight() + connection_.waiting() >= open_.size());
    HEADGATE_CHECK(connection_.state() != Connection::State::kReady ||
                   socket_ == Socket::kConnected);
  }

  void Told(PendingCall& call) { HEADGATE_CHECK(open_.erase(&call) == 1); }
  void OnReply(PendingCall& call, const wire::RespValue&, base::BootTime) override { Told(call); }
  void OnFailed(PendingCall& call, ConnectionEvent, base::BootTime) override { Told(call); }
  void OnFacts(const ServerFacts&, base::BootTime) override {}
  void OnReady(base::BootTime) override {}
  void OnDown(const absl::Status&, base::BootTime) override {}

  base::BootTime now_ = base::BootTime{0} + 1h;
  std::string output_;
  std::vector<std::unique_ptr<PendingCall>> calls_;
  std::set<PendingCall*> open_;
  Socket socket_ = Socket::kNone;
  size_t sent_ = 0;
  Connection connection_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World().Run(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
