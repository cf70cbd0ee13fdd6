#include "headgate/store/redis/link.h"

#include <algorithm>
#include <utility>

namespace headgate::store::redis {
namespace {

constexpr base::Duration kGatherMax = std::chrono::microseconds(200);

}  // namespace

Link::Link(net::EventLoop& loop, const net::StreamTarget& target,
           const net::Stream::Options& stream_options, std::shared_ptr<net::TlsClient> tls,
           const ConnectionSettings& settings, Connection::User& user, LoopStoreCounters& counters,
           uint64_t seed)
    : loop_(loop),
      target_(target),
      tls_(std::move(tls)),
      counters_(counters),
      stream_(loop, *this, stream_options),
      timer_(loop, [this] { OnTime(); }),
      gather_timer_(loop, [this] { Flush(); }),
      flush_(loop, [this] { OnTurnEnd(); }),
      connection_(settings, user, stream_.output(), seed) {}

void Link::Start(base::BootTime now) {
  connection_.Start(now);
  Settle();
}

void Link::Send(PendingCall& call, base::BootTime now) {
  if (calls_gathered() == 0) gathers_until_ = now + kGatherMax;
  connection_.Send(call, now);
  Settle();
}

void Link::Retire(const absl::Status& why, base::BootTime now) {
  connection_.Retire(why, now);
  Settle();
}

void Link::Rest(base::BootTime now) {
  connection_.Rest(now);
  Settle();
}

void Link::OnTime() {
  const base::BootTime now = loop_.Now();
  while (connection_.EndsCalls(now) && stream_.ReadNow()) {
  }
  connection_.OnTime(now);
  Settle();
}

void Link::OnConnected() {
  connection_.OnConnected(loop_.Now());
  Settle();
}

void Link::OnBytes(std::string_view bytes) {
  connection_.OnBytes(bytes, loop_.Now());
  Settle();
}

void Link::OnClosed(const absl::Status& why) {
  connection_.OnClosed(why, loop_.Now());
  Settle();
}

void Link::Settle() {
  switch (connection_.TakeAction()) {
    case Connection::Action::kNone:
      break;
    case Connection::Action::kConnect:
      if (tls_ != nullptr) stream_.UseTls(tls_->Current());
      stream_.Connect(target_);
      break;
    case Connection::Action::kDisconnect:
      stream_.Close();
      break;
  }
  if (connection_.reconnects() != reconnects_) Count();
  if (!stream_.output().empty()) loop_.AtEndOfTurn(flush_);
  if (const base::BootTime wake_at = connection_.wake_at(); wake_at.ns != INT64_MAX)
    timer_.Set(wake_at);
}

void Link::OnTurnEnd() {
  if (!Gathers()) return Flush();
  // At most one system call per 200 µs: an armed timer is not armed again.
  gather_timer_.Set(gathers_until_);
}

bool Link::Gathers() const {
  if (connection_.state() != Connection::State::kReady) return false;
  const uint64_t gathered = calls_gathered();
  const uint64_t under_way =
      connection_.in_flight() - std::min<uint64_t>(connection_.in_flight(), gathered);
  return under_way > gathered && loop_.Now() < gathers_until_;
}

void Link::Flush() {
  gather_timer_.Cancel();
  if (const uint64_t calls = calls_gathered(); calls > 0) {
    counters_.batched_calls.Add(calls);
    calls_flushed_ += calls;
  }
  stream_.Flush();
  connection_.OnWritten(loop_.Now());
  Count();
}

void Link::Count() {
  counters_.bytes_written.Add(stream_.bytes_written() - bytes_written_);
  counters_.bytes_read.Add(stream_.bytes_read() - bytes_read_);
  counters_.late_replies.Add(connection_.late_replies() - late_replies_);
  counters_.disconnects.Add(connection_.reconnects() - reconnects_);
  bytes_written_ = stream_.bytes_written();
  bytes_read_ = stream_.bytes_read();
  late_replies_ = connection_.late_replies();
  reconnects_ = connection_.reconnects();
}

}  // namespace headgate::store::redis
