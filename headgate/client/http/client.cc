#include "headgate/client/http/client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <mutex>
#include <stdexcept>

#include "headgate/base/check.h"
#include "headgate/client/http/exchange.h"

namespace headgate::client::http {

using absl::Status;
using base::BootTime;

namespace {

// After that time a name is resolved again for new connections.
constexpr base::Duration kResolvedFor = std::chrono::seconds(30);
// The pause after a failed connection, so that a server that takes none is not asked without end.
constexpr base::Duration kConnectPause = std::chrono::milliseconds(100);

void* MakeMulti() {
  // Once in a process, before any other thread uses libcurl.
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
      throw std::runtime_error("libcurl cannot be initialised");
  });
  void* const multi = curl_multi_init();
  if (multi == nullptr) throw std::runtime_error("libcurl has no memory");
  return multi;
}

}  // namespace

std::optional<base::WallTime> ParseDate(const std::string& date) {
  constexpr std::time_t kNone = -1;
  const std::time_t seconds = curl_getdate(date.c_str(), nullptr);
  const base::WallTime time = base::WallTime::FromNanos(0) + std::chrono::seconds(seconds);
  return seconds == kNone ? std::nullopt : std::optional(time);
}

struct Client::Transfer : Exchange {
  BootTime deadline{0};
  Done done;  // empty for a warm-up
  bool is_running = false;
  int sends = 0;
};

// A socket of libcurl, in the set of the loop.
class Client::Watch final : public net::SocketPoller::Socket {
 public:
  Watch(Client& client, int fd) : client_(client), fd_(fd) {}
  ~Watch() { client_.loop_.sockets().Remove(fd_, *this); }

  void SetEvents(uint32_t events) {
    if (events == events_) return;
    net::SocketPoller& poller = client_.loop_.sockets();
    if (events_ != 0) poller.Remove(fd_, *this);
    events_ = poller.Add(fd_, *this, events) ? events : 0;
    // Without a registration, the deadline of its transfer ends it.
  }

 private:
  void OnEvents(uint32_t events) override {
    int action = 0;
    if (events & (EPOLLIN | EPOLLHUP)) action |= CURL_CSELECT_IN;
    if (events & EPOLLOUT) action |= CURL_CSELECT_OUT;
    if (events & EPOLLERR) action |= CURL_CSELECT_ERR;
    client_.Act(fd_, action);  // may destroy this
  }

  Client& client_;
  const int fd_;
  uint32_t events_ = 0;
};

struct Client::Callbacks {
  static int OnSocket(CURL* /*easy*/, curl_socket_t fd, int what, void* data, void* /*socket*/) {
    Client& client = *static_cast<Client*>(data);
    if (what == CURL_POLL_REMOVE) {
      client.watches_.erase(fd);
      return 0;
    }
    auto& watch = client.watches_[fd];
    if (watch == nullptr) watch = std::make_unique<Watch>(client, fd);
    uint32_t events = 0;
    if (what & CURL_POLL_IN) events |= EPOLLIN;
    if (what & CURL_POLL_OUT) events |= EPOLLOUT;
    watch->SetEvents(events);
    return 0;
  }

  static int OnTimer(CURLM* /*multi*/, long wait_ms, void* data) {
    Client& client = *static_cast<Client*>(data);
    if (wait_ms < 0) {
      client.curl_timer_.Cancel();
    } else {
      client.curl_timer_.SetAfter(std::chrono::milliseconds(wait_ms));
    }
    return 0;
  }

  static int OnClose(void* data, curl_socket_t fd) {
    static_cast<Client*>(data)->kept_.erase(fd);
    return ::close(fd);
  }

  // Called before each time that libcurl sends the request. libcurl would send it again if a kept
  // connection breaks before the first byte of an answer; the server may have read it all the same.
  static int OnSend(void* data, char*, char*, int, int) {
    return ++static_cast<Transfer*>(data)->sends == 1 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
  }
};

Client::Client(net::EventLoop& loop, ClientOptions options, OnConnection on_connection)
    : loop_(loop),
      options_(std::move(options)),
      on_connection_(std::move(on_connection)),
      multi_(MakeMulti()),
      curl_timer_(loop, [this] { Act(CURL_SOCKET_TIMEOUT, 0); }),
      deadline_timer_(loop, [this] { OnTime(); }) {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Callbacks::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Callbacks::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.connections_max));
}

Client::~Client() {
  for (const auto& transfer : running_) curl_multi_remove_handle(multi_, transfer->easy);
  running_.clear();
  curl_multi_cleanup(multi_);  // closes the connections, by callbacks
}

void Client::Send(Request request, BootTime deadline, Done done) {
  if (waiting_.size() + requests_running_ >= options_.requests_max)
    return done(absl::ResourceExhaustedError("too many requests wait; not sent"));
  auto transfer = MakeTransfer(std::move(request), deadline, std::move(done));
  deadlines_.emplace(deadline, transfer.get());
  waiting_.push_back(std::move(transfer));
  Pump();
  SetTimer();
}

void Client::WarmUp() {
  if (options_.warm_up && kept_.empty()) OpenConnections(1);
  SetTimer();
}

bool Client::HasConnectionForRequest() const {
  if (options_.warm_up) return kept_.size() > requests_running_;
  return requests_running_ < options_.connections_max;
}

void Client::Pump() {
  if (!options_.warm_up && !waiting_.empty() && !Resolve()) return;
  while (!waiting_.empty() && HasConnectionForRequest()) {
    std::unique_ptr<Transfer> next = std::move(waiting_.front());
    waiting_.pop_front();
    Start(std::move(next));
  }
  if (options_.warm_up) OpenConnections(waiting_.size());
}

void Client::OpenConnections(size_t wanted) {
  if (loop_.Now() < connect_again_at_) return;  // OnTime tries again
  while (warm_ups_running_ < wanted &&
         kept_.size() + warm_ups_running_ < options_.connections_max) {
    if (!Resolve()) return;
    Start(MakeWarmUp());
  }
}

bool Client::Resolve() {
  const Origin& origin = options_.origin;
  if (!net::AddressIn(origin.host, origin.port).empty()) return true;
  const bool is_known = !resolved_.empty();
  if (is_known && loop_.Now() - resolved_at_ < kResolvedFor) return true;
  if (lookup_ != nullptr) return false;
  lookup_ = std::make_unique<net::NameLookup>(
      loop_, origin.host, origin.port, [this](const absl::StatusOr<net::SocketAddresses>& found) {
        const auto lookup = std::move(lookup_);
        if (!found.ok()) {
          OnConnectionFailed(absl::UnavailableError(
              fmt::format("the name {} is not resolved: {}", options_.origin.host,
                          std::string(found.status().message()))));
          return SetTimer();
        }
        resolved_.clear();
        for (const net::SocketAddress& address : *found) {
          std::string text = address.ToString();
          text.resize(text.rfind(':'));
          resolved_ += (resolved_.empty() ? "" : ",") + text;
        }
        resolved_ = fmt::format("{}:{}:{}", options_.origin.host, options_.origin.port, resolved_);
        resolved_at_ = loop_.Now();
        if (waiting_.empty()) OpenConnections(options_.warm_up ? 1 : 0);
        Pump();
        SetTimer();
      });
  return false;
}

std::unique_ptr<Client::Transfer> Client::MakeTransfer(Request request, BootTime deadline,
                                                       Done done) {
  std::unique_ptr<Transfer> transfer;
  if (spare_.empty()) {
    transfer = std::make_unique<Transfer>();
  } else {
    transfer = std::move(spare_.back());
    spare_.pop_back();
  }
  transfer->Begin(std::move(request), options_.answer_bytes_max);
  transfer->deadline = deadline;
  transfer->done = std::move(done);
  transfer->sends = 0;
  return transfer;
}

std::unique_ptr<Client::Transfer> Client::MakeWarmUp() {
  const BootTime deadline = loop_.Now() + options_.connect_timeout + options_.warm_up_timeout;
  auto transfer = MakeTransfer({.method = "GET"}, deadline, nullptr);
  deadlines_.emplace(deadline, transfer.get());
  return transfer;
}

void Client::Start(std::unique_ptr<Transfer> transfer) {
  Transfer& t = *transfer;
  CURL* const easy = t.easy;
  t.SetOptions(options_.origin.ToString(), resolved_);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options_.connect_timeout));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Callbacks::OnSend);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, &Callbacks::OnClose);
  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  // Otherwise the warm-up would be sent on a kept connection.
  if (!t.done) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);

  ++(t.done ? requests_running_ : warm_ups_running_);
  if (!t.done) ++connects_;
  t.is_running = true;
  running_.push_back(std::move(transfer));
  HEADGATE_CHECK(curl_multi_add_handle(multi_, easy) == CURLM_OK);
}

void Client::Act(int fd, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode code = message->data.result;  // the message ends with the handle
    Transfer* found = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &found);
    Transfer& t = *found;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    t.answer.status = static_cast<int>(status);
    Status outcome;
    if (code != CURLE_OK) {
      const std::string why = t.Reason(code);
      outcome = t.is_too_large ? absl::UnknownError("the answer is too large")
                : t.sends == 0 ? absl::UnavailableError(fmt::format("no connection: {}", why))
                               : absl::UnknownError(fmt::format("the connection broke: {}", why));
    } else {
      curl_socket_t kept = CURL_SOCKET_BAD;
      curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &kept);
      if (kept != CURL_SOCKET_BAD) kept_.insert(kept);
    }
    End(TakeRunning(found), outcome);
  }
  Pump();
  SetTimer();
}

std::unique_ptr<Client::Transfer> Client::TakeRunning(const Transfer* transfer) {
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const auto& held) { return held.get() == transfer; });
  std::unique_ptr<Transfer> taken = std::move(*at);
  running_.erase(at);
  curl_multi_remove_handle(multi_, taken->easy);
  taken->is_running = false;
  --(taken->done ? requests_running_ : warm_ups_running_);
  return taken;
}

void Client::End(std::unique_ptr<Transfer> transfer, const Status& outcome) {
  deadlines_.erase({transfer->deadline, transfer.get()});
  const Done done = std::exchange(transfer->done, nullptr);
  Answer answer = std::move(transfer->answer);
  if (spare_.size() < options_.connections_max) spare_.push_back(std::move(transfer));
  if (!done) {
    if (!outcome.ok()) return OnConnectionFailed(outcome);
    if (on_connection_) on_connection_(outcome);
    return;
  }
  if (!outcome.ok()) return done(outcome);
  done(std::move(answer));
}

void Client::OnConnectionFailed(const Status& why) {
  connect_again_at_ = loop_.Now() + kConnectPause;
  if (on_connection_) on_connection_(why);
  // Another connection, or another attempt, may still serve the calls that wait.
  if (!kept_.empty() || warm_ups_running_ > 0) return;
  auto waiting = std::exchange(waiting_, {});
  for (auto& transfer : waiting) {
    End(std::move(transfer), absl::UnavailableError(fmt::format("no connection; not sent: {}",
                                                                std::string(why.message()))));
  }
}

void Client::OnTime() {
  const BootTime now = loop_.Now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Transfer* const late = deadlines_.begin()->second;
    if (late->is_running) {
      const bool is_request = static_cast<bool>(late->done);
      const Status why = !is_request || late->sends == 0
                             ? absl::UnavailableError("no connection in time")
                             : absl::DeadlineExceededError("no answer in time");
      End(TakeRunning(late), why);
      continue;
    }
    const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const auto& held) { return held.get() == late; });
    std::unique_ptr<Transfer> taken = std::move(*at);
    waiting_.erase(at);
    End(std::move(taken), kept_.empty() ? absl::UnavailableError("no connection in time; not sent")
                                        : absl::ResourceExhaustedError(
                                              "every connection was in use; not sent in time"));
  }
  Pump();
  SetTimer();
}

void Client::SetTimer() {
  if (deadlines_.empty()) return deadline_timer_.Cancel();
  BootTime wake = deadlines_.begin()->first;
  if (options_.warm_up && !waiting_.empty() && loop_.Now() < connect_again_at_)
    wake = std::min(wake, connect_again_at_);
  deadline_timer_.Set(wake);
}

}  // namespace headgate::client::http
