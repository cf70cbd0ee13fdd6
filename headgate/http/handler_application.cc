#include "headgate/http/handler_application.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/digits.h"
#include "headgate/base/time_of_day.h"
#include "headgate/http/date.h"
#include "headgate/http/problem.h"

namespace headgate::http {
namespace {

// Makes the request point to its head. Handlers see the fields that say how the request is framed,
// as in HTTP/1: a mapping may need Host, and a preflight has no content. `length` keeps a number.
void Point(const RequestHead& head, const net::Peer& peer, Request& request, std::string& length) {
  request.method = head.method;
  request.target = head.target;
  request.host = head.authority;
  request.peer = peer;
  request.body = {};
  auto& fields = request.fields;
  fields.clear();
  if (!head.authority.empty()) fields.emplace_back("Host", head.authority);
  for (const auto [name, value] : head.fields) fields.emplace_back(name, value);
  if (head.body.kind == BodyLength::Kind::kSized) {
    length.clear();
    base::AppendNumber(head.body.bytes, length);
    fields.emplace_back("Content-Length", length);
  } else if (head.body.kind == BodyLength::Kind::kUnsized) {
    fields.emplace_back("Transfer-Encoding", "chunked");
  }
  if (head.expects_continue) fields.emplace_back("Expect", "100-continue");
}

constexpr Refusal kContent{400, "GET and HEAD requests have no content", kAmbiguous};

constexpr Refusal kTunnel{501, "this server opens no tunnels",
                          "send the request without :protocol"};

bool HasNoContent(std::string_view method) { return method == "GET" || method == "HEAD"; }

// Whether a response with this status has no content.
bool IsBare(int status) { return status == 204 || status == 304; }

}  // namespace

// One request: it is collected, then handled until there is a response, then sent. The session
// deletes it, and the application keeps it, with its memory, for a later request.
class HandlerApplication::HandledRequest final : public RequestReceiver {
 public:
  explicit HandledRequest(HandlerApplication& application) : application_(application) {
    suspension_.wake = [this] {
      if (exchange_ != nullptr) exchange_->CallAgain();
    };
    request_.suspension = &suspension_;
  }

  static void operator delete(HandledRequest* request, std::destroying_delete_t) {
    request->application_.Keep(request);
  }
  static void Free(HandledRequest* request) {
    request->~HandledRequest();
    ::operator delete(request);
  }

  void Begin(RequestHead& head, const net::Peer& peer, ServerExchange& exchange,
             base::Instant now) {
    exchange_ = &exchange;
    std::swap(head_, head);
    Point(head_, peer, request_, length_);
    request_.connection_state = &exchange.connection_state();
    if (const Refusal refusal = application_.Judge(request_, head_)) return Refuse(refusal, now);
    if (!head_.protocol.empty() && head_.version == Version::kHttp2) return Refuse(kTunnel, now);
    if (head_.expects_continue) exchange_->SendInformational({.status = 100});
    // A request for a tunnel ends only after its answer, and nobody opens one here: an Upgrade of
    // HTTP/1 is ignored.
    if (!head_.protocol.empty()) Handle(now);
  }

  // Prepares for another request. Returns false if a handler still waits for something: its state
  // must be destroyed.
  bool End() {
    exchange_ = nullptr;
    if (state_ == State::kWaits) return false;
    suspension_.allowed = false;
    state_ = State::kCollects;
    draining_ = false;
    stalled_since_.reset();
    held_until_.reset();
    stated_.reset();
    sent_ = 0;
    response_.Clear();
    body_.clear();
    for (std::string* const buffer : {&body_, &response_.body, &part_}) {
      if (buffer->capacity() > kKeptBytesMax) std::string().swap(*buffer);
    }
    if (head_bytes() > 2 * kKeptBytesMax) {
      head_ = {};
      std::vector<std::pair<std::string_view, std::string_view>>().swap(request_.fields);
    }
    return true;
  }

  void OnData(std::string_view bytes, base::Instant now) override {
    exchange_->Consumed(bytes.size());
    if (state_ != State::kCollects) return;
    if (HasNoContent(head_.method)) return Refuse(kContent, now);
    if (bytes.size() > application_.options_.body_bytes_max - body_.size())
      return Refuse(kBodyTooLarge, now);
    body_.append(bytes);
  }

  void OnEnd(const Fields& /*trailers*/, base::Instant now) override {
    if (state_ == State::kCollects) Handle(now);
  }

  void OnCalledAgain(base::Instant now) override {
    if (state_ == State::kWaits) return Handle(now);
    if (state_ == State::kSends) SendMore(now);
  }

  void OnWritable(base::Instant now) override {
    if (state_ == State::kSends) SendMore(now);
  }

  void OnAbort(base::Instant /*now*/) override {}

  void OnDrain(base::Instant now) override {
    draining_ = true;
    if (state_ == State::kSends && is_endless()) SendMore(now);
  }

  size_t HeldBytes() const override {
    return body_.capacity() + response_.body.capacity() + head_bytes();
  }

  Patience patience() const override {
    switch (state_) {
      case State::kCollects:
        return {.what = Patience::For::kRequest};
      case State::kWaits:
        if (held_until_) return {.what = Patience::For::kHeldAnswer, .since = *held_until_};
        return {.what = Patience::For::kAnswer, .since = *stalled_since_};
      case State::kSends:
        if (!stalled_since_) break;  // the client has not read all of it yet
        if (is_endless()) return {.what = Patience::For::kNothing};
        return {.what = Patience::For::kAnswer, .since = *stalled_since_};
      case State::kDone:
        break;
    }
    return {};
  }

 private:
  enum class State : uint8_t { kCollects, kWaits, kSends, kDone };

  size_t head_bytes() const {
    return head_.target.capacity() + head_.fields.held_bytes() +
           request_.fields.capacity() * sizeof(request_.fields.front());
  }

  bool is_endless() const { return response_.stream != nullptr && response_.stream->endless(); }

  void Refuse(const Refusal& refusal, base::Instant now) {
    response_.Clear();
    AnswerProblem(refusal.status, refusal.detail, refusal.hint, response_);
    response_.closes = true;
    Send(now);
  }

  void Handle(base::Instant now) {
    response_.Clear();
    request_.body = body_;
    application_.handler_.Handle(request_, response_, now);
    if (!response_.later) return Send(now);
    state_ = State::kWaits;
    held_until_ = response_.held_until;
    if (!stalled_since_) stalled_since_ = now;
  }

  void Send(base::Instant now) {
    state_ = State::kSends;
    stalled_since_.reset();
    answer_.status = response_.status;
    answer_.closes = response_.closes;
    application_.AddDate(response_.fields, now);
    std::swap(answer_.fields, response_.fields);
    answer_.body = {.kind = BodyLength::Kind::kSized, .bytes = response_.body.size()};
    if (response_.stream != nullptr) {
      stated_ = response_.stream->size_bytes();
      if (stated_) answer_.body.bytes += *stated_;
    }
    if ((response_.stream != nullptr && !stated_) || !response_.trailers.empty())
      answer_.body = {.kind = BodyLength::Kind::kUnsized};
    if (IsBare(response_.status)) answer_.body = {};
    exchange_->SendHead(answer_);
    if (head_.method == "HEAD" || IsBare(response_.status)) return EndAnswer();
    SendMore(now);
  }

  // Sends as much as fits into the window.
  void SendMore(base::Instant now) {
    const std::string_view body = response_.body;
    for (; sent_ < body.size(); sent_ += std::min(kPartBytesMax, body.size() - sent_)) {
      if (exchange_->unsent_bytes() >= kWindowBytes) return;
      exchange_->SendData(body.substr(sent_, kPartBytesMax));
    }
    if (response_.stream == nullptr || (draining_ && is_endless())) return EndAnswer();
    while (exchange_->unsent_bytes() < kWindowBytes) {
      switch (SendPart(*response_.stream, now)) {
        case BodySource::Next::kMore:
          stalled_since_.reset();
          break;
        case BodySource::Next::kLater:
          return;
        case BodySource::Next::kEnd:
          return EndAnswer();
        case BodySource::Next::kBroken:
          state_ = State::kDone;
          return exchange_->Abort();
      }
    }
  }

  // A source that gives more than the size it stated counts as broken. If it gives less, the
  // exchange aborts the response at its end.
  BodySource::Next SendPart(BodySource& stream, base::Instant now) {
    part_.clear();
    const BodySource::Next next = stream.Read(kPartBytesMax, part_, now);
    HEADGATE_CHECK(part_.size() <= kPartBytesMax);
    HEADGATE_CHECK(next != BodySource::Next::kMore || !part_.empty());
    if (next == BodySource::Next::kLater && (!part_.empty() || !stalled_since_))
      stalled_since_ = now;
    const size_t fits =
        stated_ ? static_cast<size_t>(std::min<uint64_t>(part_.size(), *stated_)) : part_.size();
    if (stated_) *stated_ -= fits;
    exchange_->SendData(std::string_view(part_).substr(0, fits));
    return fits < part_.size() ? BodySource::Next::kBroken : next;
  }

  void EndAnswer() {
    state_ = State::kDone;
    response_.stream.reset();
    exchange_->SendEnd(response_.trailers);
  }

  HandlerApplication& application_;
  ServerExchange* exchange_ = nullptr;
  RequestHead head_;
  Request request_;
  Suspension suspension_;
  std::string body_;
  Response response_;
  ResponseHead answer_;
  std::string part_;    // of the response's body
  std::string length_;  // Content-Length of the request
  State state_ = State::kCollects;
  bool draining_ = false;
  // The time at which the handler began to wait, or the source ran out of data.
  std::optional<base::Instant> stalled_since_{};
  std::optional<base::Instant> held_until_{};
  size_t sent_ = 0;                   // of the response's body, without its stream
  std::optional<uint64_t> stated_{};  // bytes that the stream still owes
};

HandlerApplication::HandlerApplication(Handler& handler, const HandlerOptions& options)
    : handler_(handler), options_(options) {}

HandlerApplication::~HandlerApplication() {
  for (HandledRequest* const request : kept_) HandledRequest::Free(request);
}

std::unique_ptr<RequestReceiver> HandlerApplication::OnRequest(RequestHead&& head,
                                                               const net::Peer& peer,
                                                               ServerExchange& exchange,
                                                               base::Instant now) {
  HandledRequest* request = nullptr;
  if (kept_.empty()) {
    request = new HandledRequest(*this);
  } else {
    request = kept_.back();
    kept_.pop_back();
  }
  std::unique_ptr<RequestReceiver> receiver(request);
  request->Begin(head, peer, exchange, now);
  return receiver;
}

bool HandlerApplication::AnswerRefusedHead(const RequestHead& head, const net::Peer& peer,
                                           const Refusal& refusal, ResponseHead& answer,
                                           std::string& body, base::Instant now) {
  Request request;
  std::string length;
  Point(head, peer, request, length);
  Response response;
  if (!handler_.AnswerRefusedHead(request, refusal, response, now))
    AnswerProblem(refusal.status, refusal.detail, refusal.hint, response);
  answer.status = response.status;
  AddDate(response.fields, now);
  answer.fields = std::move(response.fields);
  body = std::move(response.body);
  return true;
}

Refusal HandlerApplication::Judge(const Request& request, const RequestHead& head) const {
  if (head.version != Version::kHttp10 || !head.authority.empty()) {
    if (!options_.hosts.Knows(head.authority) && !handler_.TakesAnyHost(request.path())) {
      return {421, "this server does not know the name in Host",
              "use an address or localhost, or start the server with --known-host NAME"};
    }
  }
  // In HTTP/2, the head need not say that nothing follows.
  const bool may_be_empty = head.body.is_empty() || (head.version == Version::kHttp2 &&
                                                     head.body.kind == BodyLength::Kind::kUnsized);
  if (HasNoContent(head.method) && !may_be_empty) return kContent;
  if (head.body.kind == BodyLength::Kind::kSized && head.body.bytes > options_.body_bytes_max)
    return kBodyTooLarge;
  return {};
}

void HandlerApplication::AddDate(Fields& fields, base::Instant now) const {
  const auto date = Date(base::TimeOfDay(options_.clock, now));
  fields.Add("Date", {date.data(), date.size()});
}

void HandlerApplication::Keep(HandledRequest* request) {
  if (request->End() && kept_.size() < kKeptMax) return kept_.push_back(request);
  HandledRequest::Free(request);
}

}  // namespace headgate::http
