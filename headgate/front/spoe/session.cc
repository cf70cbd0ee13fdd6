#include "headgate/front/spoe/session.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/net/loopback.h"

namespace headgate::front::spoe {
namespace {

using wire::SpopFrame;
using wire::SpopStatus;
using wire::SpopType;

constexpr std::string_view kVersion = "2.0";

// Whether a list such as "1.0, 2.0" names the version.
bool NamesVersion(std::string_view list) {
  while (!list.empty()) {
    if (base::TakeListItem(list) == kVersion) return true;
  }
  return false;
}

void AppendTextVariable(std::string_view name, std::string_view value, std::string& out) {
  wire::AppendSpopSetVariable(name, out);
  wire::AppendSpopTextValue(value, out);
}

void AppendVariableOf(std::string_view field, std::string_view value, std::string& out) {
  std::string name(field);
  for (char& c : name) c = c == '-' ? '_' : base::ToLower(c);
  AppendTextVariable(name, value, out);
}

}  // namespace

struct SpoeSession::Waiting {
  explicit Waiting(SpoeSession& session)
      : asked([this, &session] { Wake(session); }),
        timer(session.context_.loop, [this, &session] { Wake(session); }),
        counters(session.context_.counters) {}
  ~Waiting() {
    if (!ack.empty()) counters.held_ended.Add();
  }

  void Wake(SpoeSession& session) {
    ready = true;
    if (session.wake_) session.wake_();
  }

  uint64_t stream_id = 0;
  uint64_t frame_id = 0;
  // When the request came; if the answer is held, the time until which it is held.
  base::Instant since{};
  bool ready = false;
  gate::Asked asked;
  std::string ack;  // the held answer of a request in a queue
  base::BootTime due{0};
  net::Timer timer;
  gate::Counters& counters;
};

SpoeSession::SpoeSession(Context& context, net::Peer peer)
    : context_(context), peer_(std::move(peer)) {}
SpoeSession::~SpoeSession() {
  if (greeted_ && !asked_) context_.pace.OnVain(context_.loop.Now());
}

net::Session::Progress SpoeSession::OnBytes(std::span<const char> input, std::string& output,
                                            base::Instant now) {
  AnswerReady(output, now);
  std::string_view rest(input.data(), input.size());
  const size_t output_pause = output.size() + kOutputPauseBytes;
  bool failed = false;
  while (!closing_ && rest.size() >= wire::kSpopLengthBytes && output.size() < output_pause) {
    const uint32_t length = wire::SpopLength(rest);
    if (length > frame_bytes_max_) {
      failed = !Refuse(SpopStatus::kTooBig, "the frame is too big", output);
    } else if (rest.size() - wire::kSpopLengthBytes < length) {
      break;
    } else {
      failed = !TakeFrame(rest.substr(wire::kSpopLengthBytes, length), output, now);
      rest.remove_prefix(wire::kSpopLengthBytes + length);
    }
  }
  if (draining_ && waiting_.empty() && rest.empty() && !closing_)
    Disconnect(SpopStatus::kNormal, "the agent is going down", output);
  Progress progress{.consumed = closing_ ? input.size() : input.size() - rest.size(),
                    .answered = std::exchange(answered_, 0)};
  progress.close = closing_;
  progress.protocol_error = failed;
  progress.mid_request = !rest.empty();
  progress.more =
      !closing_ && output.size() >= output_pause && rest.size() >= wire::kSpopLengthBytes;
  for (const auto& waiting : waiting_) {
    if (!progress.waiting() || waiting->since < *progress.waiting_since)
      progress.waiting_since = waiting->since;
  }
  return progress;
}

void SpoeSession::OnDrain() {
  draining_ = true;
  if (wake_) wake_();
}

bool SpoeSession::TakeFrame(std::string_view bytes, std::string& output, base::Instant now) {
  const auto frame = wire::ParseSpopFrame(bytes);
  if (!frame) {
    return Refuse(SpopStatus::kInvalid, "the frame is malformed", output);
  }
  if (!frame->complete) {
    return Refuse(SpopStatus::kFragmented, "fragments are not supported", output);
  }
  switch (frame->type) {
    case SpopType::kHaproxyHello:
      if (!greeted_) return TakeHello(*frame, output);
      break;
    case SpopType::kNotify:
      if (greeted_ && held_hello_.empty()) return TakeNotify(*frame, output, now);
      break;
    case SpopType::kHaproxyDisconnect:
      Disconnect(SpopStatus::kNormal, "", output);
      return true;
    case SpopType::kAgentHello:
    case SpopType::kAgentDisconnect:
    case SpopType::kAck:
      break;
  }
  return Refuse(SpopStatus::kInvalid, "this frame is not expected here", output);
}

bool SpoeSession::TakeHello(const SpopFrame& frame, std::string& output) {
  std::string_view rest = frame.payload;
  std::optional<std::string_view> versions;
  std::optional<int64_t> frame_bytes;
  bool is_health_check = false;
  while (!rest.empty()) {
    const auto name = wire::TakeSpopText(rest);
    const auto value = name ? wire::TakeSpopValue(rest) : std::nullopt;
    if (!value) {
      return Refuse(SpopStatus::kInvalid, "the hello is malformed", output);
    }
    if (*name == "supported-versions") versions = value->text;
    if (*name == "max-frame-size") frame_bytes = value->number;
    if (*name == "healthcheck") is_health_check = value->truth;
  }
  if (!versions || !frame_bytes) {
    return Refuse(versions ? SpopStatus::kNoFrameSize : SpopStatus::kNoVersion,
                  "the hello lacks a value", output);
  }
  if (!NamesVersion(*versions)) {
    return Refuse(SpopStatus::kBadVersion, "version 2.0 is needed", output);
  }
  if (*frame_bytes < wire::kSpopFrameBytesMin) {
    return Refuse(SpopStatus::kBadFrameSize, "the frames are too small", output);
  }
  frame_bytes_max_ =
      static_cast<uint32_t>(std::min<int64_t>(*frame_bytes, wire::kSpopFrameBytesMax));
  const size_t begin = wire::BeginSpopFrame(SpopType::kAgentHello, 0, 0, output);
  wire::AppendSpopText("version", output);
  wire::AppendSpopTextValue(kVersion, output);
  wire::AppendSpopText("max-frame-size", output);
  wire::AppendSpopNumberValue(frame_bytes_max_, output);
  wire::AppendSpopText("capabilities", output);
  wire::AppendSpopTextValue("pipelining", output);
  wire::EndSpopFrame(begin, output);
  asked_ = is_health_check;
  closing_ = is_health_check;
  greeted_ = true;
  if (!is_health_check && context_.pace.Holds(context_.loop.Now())) HoldHello(begin, output);
  return true;
}

void SpoeSession::HoldHello(size_t begin, std::string& output) {
  if (context_.on_vain) context_.on_vain(frame_bytes_max_);
  held_hello_ = output.substr(begin);
  output.resize(begin);
  hello_timer_ = std::make_unique<net::Timer>(context_.loop, [this] {
    if (wake_) wake_();
  });
  hello_timer_->Set(context_.loop.Now() + HelloPace::kHold);
  hello_due_ = context_.loop.Now() + HelloPace::kHold;
}

bool SpoeSession::TakeNotify(const SpopFrame& frame, std::string& output, base::Instant now) {
  asked_ = true;
  switch (notify_.Read(frame.payload)) {
    case NotifyContent::kRequest:
      break;
    case NotifyContent::kMalformed:
      return Refuse(SpopStatus::kInvalid, "the message is malformed", output);
    case NotifyContent::kSeveralMessages:
      return Refuse(SpopStatus::kInvalid, "an event may have one message only", output);
  }
  mapping::DescribedRequest& request = notify_.request();
  request.peer = peer_.ip;
  request.may_be_trusted = !net::OnlySeemsLocal(peer_);
  if (waiting_.size() >= kWaitingMax) {
    context_.judge.RefuseBusy(verdict_);
    AppendAck(frame.stream_id, frame.frame_id, output, now);
    ++answered_;
    return true;
  }
  const auto make_asked = [&]() -> gate::Asked& {
    return EnsureSpare(frame.stream_id, frame.frame_id, now).asked;
  };
  if (!context_.judge.Decide(request, make_asked, now, verdict_)) {
    Wait();
  } else if (verdict_.wait > base::Duration(0)) {
    Finish(EnsureSpare(frame.stream_id, frame.frame_id, now), output, now);
    Wait();
  } else {
    AppendAck(frame.stream_id, frame.frame_id, output, now);
    ++answered_;
  }
  return true;
}

SpoeSession::Waiting& SpoeSession::EnsureSpare(uint64_t stream_id, uint64_t frame_id,
                                               base::Instant now) {
  if (spare_ == nullptr) spare_ = std::make_unique<Waiting>(*this);
  spare_->stream_id = stream_id;
  spare_->frame_id = frame_id;
  spare_->since = now;
  return *spare_;
}

void SpoeSession::Wait() { waiting_.push_back(std::move(spare_)); }

void SpoeSession::AnswerReady(std::string& output, base::Instant now) {
  if (!held_hello_.empty() && context_.loop.Now() >= hello_due_)
    output.append(std::exchange(held_hello_, {}));
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Waiting& waiting = **at;
    bool done = false;
    if (std::exchange(waiting.ready, false)) {
      if (!waiting.ack.empty()) {
        done = context_.loop.Now() >= waiting.due;
        done ? void(output.append(waiting.ack)) : waiting.timer.Set(waiting.due);
      } else if (context_.judge.Continue(waiting.asked, now, verdict_)) {
        done = Finish(waiting, output, now);
      }
    }
    if (done) ++answered_;
    at = done ? waiting_.erase(at) : std::next(at);
  }
}

bool SpoeSession::Finish(Waiting& waiting, std::string& output, base::Instant now) {
  const bool now_due = verdict_.wait <= base::Duration(0);
  AppendAck(waiting.stream_id, waiting.frame_id, now_due ? output : waiting.ack, now);
  if (now_due) return true;
  context_.counters.held_begun.Add();
  waiting.since = now + verdict_.wait;
  waiting.due = context_.loop.Now() + verdict_.wait;
  waiting.timer.Set(waiting.due);
  return false;
}

void SpoeSession::AppendAck(uint64_t stream_id, uint64_t frame_id, std::string& output,
                            base::Instant now) {
  const size_t begin = wire::BeginSpopFrame(SpopType::kAck, stream_id, frame_id, output);
  wire::AppendSpopSetVariable("status", output);
  wire::AppendSpopNumberValue(static_cast<uint32_t>(verdict_.status), output);
  AppendTextVariable("outcome", gate::Name(verdict_.outcome), output);
  const size_t fields_begin = output.size();
  const auto emit = [&](std::string_view field, std::string_view value) {
    AppendVariableOf(field, value, output);
  };
  gate::EmitFields(verdict_, context_.answer, now, emit);
  if (output.size() - begin > wire::kSpopLengthBytes + frame_bytes_max_) [[unlikely]] {
    output.resize(fields_begin);
    AppendShortFields(begin, output, now);
  }
  wire::EndSpopFrame(begin, output);
}

// Only a name of a limit can be long, so Retry-After is among the fields that fit.
void SpoeSession::AppendShortFields(size_t frame_begin, std::string& output, base::Instant now) {
  std::vector<std::string> fields;
  const auto emit = [&](std::string_view field, std::string_view value) {
    AppendVariableOf(field, value, fields.emplace_back());
  };
  gate::EmitFields(verdict_, context_.answer, now, emit);
  std::stable_sort(fields.begin(), fields.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  const size_t end = frame_begin + wire::kSpopLengthBytes + frame_bytes_max_;
  for (const std::string& field : fields) {
    if (output.size() + field.size() > end) {
      if (const auto say = std::exchange(context_.on_left_out, nullptr)) say(frame_bytes_max_);
      return;
    }
    output.append(field);
  }
}

bool SpoeSession::Refuse(SpopStatus status, std::string_view message, std::string& output) {
  if (context_.on_refused) context_.on_refused(status, message);
  Disconnect(status, message, output);
  return false;
}

void SpoeSession::Disconnect(SpopStatus status, std::string_view message, std::string& output) {
  const size_t begin = wire::BeginSpopFrame(SpopType::kAgentDisconnect, 0, 0, output);
  wire::AppendSpopText("status-code", output);
  wire::AppendSpopNumberValue(static_cast<uint32_t>(status), output);
  wire::AppendSpopText("message", output);
  wire::AppendSpopTextValue(message, output);
  wire::EndSpopFrame(begin, output);
  closing_ = true;
}

}  // namespace headgate::front::spoe
