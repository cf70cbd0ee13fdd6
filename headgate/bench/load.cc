#include "headgate/bench/load.h"

#include <algorithm>
#include <utility>

namespace headgate::bench {
namespace {

// Requests that become due meanwhile are sent together.
constexpr base::Duration kTick = std::chrono::microseconds(500);
// More than this many wait for a connection only if the server is far too slow for the rate.
constexpr size_t kWaitingMax = 10'000'000;

}  // namespace

class Load::Connection final : private net::Stream::Owner {
 public:
  Connection(Load& load, net::EventLoop& loop, const LoadOptions& options)
      : load_(load),
        talk_(MakeTalk(options.talk)),
        stream_(loop, *this,
                {.tls = options.tls,
                 .server_name = options.tls_name,
                 .connect_timeout = options.timeout}) {
    stream_.Connect(options.server);
  }

  // `due`: since when the request waits.
  void Ask(uint64_t key, base::BootTime due) {
    talk_->Ask(key, stream_.output());
    due_.push_back(due);
  }
  void Flush() { stream_.Flush(); }
  size_t under_way() const { return due_.size(); }

 private:
  void OnConnected() override {
    talk_->Greet(stream_.output());
    stream_.Flush();
    CountOpen();
  }
  // Once the greeting is answered.
  void CountOpen() {
    if (talk_->greeted() && !std::exchange(open_, true)) ++load_.open_;
  }
  void OnBytes(std::string_view bytes) override {
    const base::BootTime now = load_.loop_.Now();
    bool answered = false;
    const absl::Status status = talk_->Take(bytes, [&](const Answer& answer) {
      if (due_.empty()) return;
      load_.latencies_.Add(now - due_.front());
      due_.pop_front();
      LoadCounts& counts = load_.counts_;
      switch (answer.kind) {
        case Answer::Kind::kAllowed:
          ++counts.allowed;
          break;
        case Answer::Kind::kDenied:
          ++counts.denied;
          break;
        case Answer::Kind::kError:
          counts.AddError(answer.error_kind, answer.error);
          break;
      }
      answered = true;
    });
    if (!status.ok()) {
      load_.failure_ = status;
      return stream_.Close();
    }
    CountOpen();
    if (answered) load_.OnAnswered(*this, now);
  }
  void OnClosed(const absl::Status& why) override {
    load_.failure_ = stream_.distrusts_server() ? absl::UnauthenticatedError(why.message()) : why;
  }

  Load& load_;
  const std::unique_ptr<Talk> talk_;
  std::deque<base::BootTime> due_;  // of requests without an answer
  bool open_ = false;
  net::Stream stream_;
};

void LoadCounts::AddError(std::string_view kind, std::string_view error) {
  ++errors;
  auto found = errors_by_kind.find(kind);
  if (found == errors_by_kind.end()) {
    const bool has_room = errors_by_kind.size() + 1 < kErrorKindsMax;
    found = errors_by_kind.try_emplace(has_room ? std::string(kind) : "other").first;
  }
  ++found->second;
  if (!first_error.empty()) return;
  // The text of an error in the Redis protocol begins with its kind.
  if (!error.starts_with(kind)) first_error.append(kind).append(": ");
  first_error.append(error.substr(0, kErrorBytesMax));
}

Load::Load(net::EventLoop& loop, const LoadOptions& options)
    : loop_(loop), options_(options), timer_(loop, [this] { OnTick(); }) {
  for (uint32_t i = 0; i < options.connections; ++i)
    connections_.push_back(std::make_unique<Connection>(*this, loop, options_));
}

Load::~Load() = default;

void Load::Start() {
  running_ = true;
  started_ = loop_.Now();
  if (options_.rate > 0) {
    for (const auto& connection : connections_) free_.push_back(connection.get());
    return OnTick();
  }
  for (const auto& connection : connections_) {
    for (uint32_t i = 0; i < options_.pipeline; ++i) Send(*connection, started_);
    connection->Flush();
  }
}

bool Load::idle() const {
  return waiting_.empty() &&
         std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->under_way() == 0; });
}

void Load::Clear() {
  latencies_.Clear();
  counts_ = {};
}

void Load::Send(Connection& connection, base::BootTime due) {
  connection.Ask(random_.Below(options_.keys), due);
}

void Load::OnTick() {
  const base::BootTime now = loop_.Now();
  if (running_) {
    // Computed from the start, so that no rounding adds up.
    const auto elapsed_ns = static_cast<uint64_t>((now - started_).count());
    const auto due = static_cast<uint64_t>(static_cast<unsigned __int128>(elapsed_ns) *
                                           options_.rate / 1'000'000'000);
    for (; became_due_ < due && waiting_.size() < kWaitingMax; ++became_due_) {
      const auto since_start = static_cast<int64_t>(
          static_cast<unsigned __int128>(became_due_ + 1) * 1'000'000'000 / options_.rate);
      waiting_.push_back(started_ + base::Duration(since_start));
      ++counts_.asked;
    }
  }
  SendDue(now);
  if (running_ || !waiting_.empty()) timer_.Set(now + kTick);
}

void Load::SendDue(base::BootTime) {
  while (!waiting_.empty() && !free_.empty()) {
    Connection& connection = *free_.front();
    free_.pop_front();
    Send(connection, waiting_.front());
    waiting_.pop_front();
    connection.Flush();
  }
}

void Load::OnAnswered(Connection& connection, base::BootTime now) {
  if (options_.rate > 0) {
    if (connection.under_way() == 0) free_.push_back(&connection);
    return SendDue(now);
  }
  if (!running_) return;
  const size_t missing = options_.pipeline - connection.under_way();
  for (size_t i = 0; i < missing; ++i) Send(connection, now);
  counts_.asked += missing;
  connection.Flush();
}

}  // namespace headgate::bench
