#include "headgate/front/resp/throttle.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/front/resp/throttle_reply.h"
#include "headgate/front/resp/throttle_script.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// The batch of a session, whose decisions come later.
class ThrottleBatch::Late final : public LateReply {
 public:
  explicit Late(ThrottleBatch& batch) : LateReply(CommandKind::kAlone), batch_(batch) {}

  limiter::Pending& pending() { return pending_; }
  Answered Write(std::string& output, base::Instant /*now*/) override {
    if (pending_.waiting()) return Answered::kLater;
    batch_.Reply(pending_.settled(), asked_, output);
    return Answered::kWell;  // Reply has counted the errors
  }
  // Takes over the keys, because other commands are collected meanwhile.
  void Keep(std::span<Asked> asked) {
    asked_.assign(std::make_move_iterator(asked.begin()), std::make_move_iterator(asked.end()));
  }

 private:
  ThrottleBatch& batch_;
  std::vector<Asked> asked_;
  limiter::Pending pending_{[this] { Wake(); }};
};

ThrottleBatch::ThrottleBatch(limiter::Checker& checker, Counters& counters)
    : own_(checker), counters_(counters) {
  for (limiter::BatchEntry& entry : batch_) entry.terms = own_.terms();
}

ThrottleBatch::~ThrottleBatch() = default;

template <typename Words>
bool ThrottleBatch::Add(ThrottleForm form, const Words& command, const Turn& turn) {
  const bool has_quantity = form != ThrottleForm::kCell || command.size() != 5;
  const store::LimitEntry* limit =
      has_quantity ? nullptr : limits_.Find(LimitText{command[2], command[3], command[4]});
  int64_t quantity = 1;
  if (limit == nullptr) {
    ThrottleArguments arguments;
    if (absl::Status status = ReadArguments(form, command, arguments); !status.ok())
      return Refuse(form, status, turn);
    limit = limits_.Find(arguments.limit);
    if (limit == nullptr || arguments.quantity < 0) [[unlikely]] {
      if (absl::Status status = CheckArguments(arguments); !status.ok())
        return Refuse(form, status, turn);
      const auto made = LimitOf(arguments.limit);
      auto handle = made.ok() ? own_.Intern(*made) : made.status();
      if (!handle.ok()) return Refuse(form, handle.status(), turn);
      // The collected requests may still use the limit that this one replaces.
      if (!Flush(turn)) return false;
      limit = limits_.Put(arguments.limit, *std::move(handle));
    }
    if (!has_quantity) limits_.Note({command[2], command[3], command[4]}, arguments.limit);
    quantity = arguments.quantity;
  }
  if (size_ == 0) keys_are_heard_ = own_.keys_are_heard();
  if (own_.may_wait() || keys_are_heard_) {
    asked_[size_].key = command[1];
    asked_[size_].cost = static_cast<algorithm::Cost>(quantity);
  }
  store::TakeRequest& request = batch_[size_++].request;
  request.key = own_.HashOf(command[1]);
  request.limit = limit;
  request.cost = static_cast<algorithm::Cost>(quantity);
  request.operation = quantity == 0 ? store::Operation::kPeek : store::Operation::kTake;
  return true;
}

template bool ThrottleBatch::Add(ThrottleForm, const wire::RespParser&, const Turn&);
template bool ThrottleBatch::Add(ThrottleForm, const CommandWords&, const Turn&);

bool ThrottleBatch::Refuse(ThrottleForm form, const absl::Status& status, const Turn& turn) {
  if (!Flush(turn)) return false;
  counters_.errors.Add();
  const absl::string_view message = status.message();
  wire::RespWriter(turn.output, wire::RespVersion::k2)
      .Error(
          fmt::format("{}{}", ErrorPrefix(form), std::string_view(message.data(), message.size())));
  return true;
}

bool ThrottleBatch::Flush(const Turn& turn) {
  const size_t count = std::exchange(size_, 0);
  if (count == 0) return true;
  const std::span<limiter::BatchEntry> batch = std::span(batch_).first(count);
  const auto key = [this](size_t index) -> std::string_view { return asked_[index].key; };
  if (own_.may_wait() && next_ == nullptr) next_ = std::make_unique<Late>(*this);
  limiter::Pending* const pending = next_ == nullptr ? nullptr : &next_->pending();
  const std::span<Asked> asked = std::span(asked_).first(keys_are_heard_ ? count : 0);
  if (!own_.Decide(batch, key, pending, turn.now)) {
    next_->Keep(asked);
    turn.queue.Add(std::move(next_), count);
    return false;
  }
  Reply(base::Strided<const limiter::Settled>::Of(batch, &limiter::BatchEntry::settled), asked,
        turn.output);
  return true;
}

void ThrottleBatch::Reply(base::Strided<const limiter::Settled> settled,
                          std::span<const Asked> asked, std::string& output) {
  std::array<char, kCommandsMax * kThrottleReplyBytesMax> replies;
  char* at = replies.data();
  const auto send = [&] {
    output.append(replies.data(), static_cast<size_t>(at - replies.data()));
    at = replies.data();
  };
  std::array<uint64_t, limiter::kOutcomeCount> counts{};
  const bool passes = own_.passthrough();
  for (size_t i = 0; i < settled.size(); ++i) {
    const limiter::Outcome outcome = limiter::OutcomeOf(settled[i].decision, settled[i].mode);
    if (outcome == limiter::Outcome::kNeverFits && IsOfCounter(settled[i].decision)) [[unlikely]] {
      send();
      counters_.errors.Add();
      wire::RespWriter(output, wire::RespVersion::k2).Error(kWrongType);
      continue;
    }
    ++counts[static_cast<size_t>(outcome)];
    if (!asked.empty()) [[unlikely]]
      own_.ObserveKey({outcome, asked[i].cost, asked[i].key});
    if (passes || outcome != limiter::Outcome::kUnavailable) [[likely]] {
      // The limit fits, because CheckArguments bounds max_burst + 1.
      at = WriteThrottleReply(
          at, passes ? limiter::PassedThrough(settled[i].decision) : settled[i].decision);
      continue;
    }
    send();
    counters_.errors.Add();
    wire::RespWriter(output, wire::RespVersion::k2).Error(fmt::format("ERR {}", kStoreUnreachable));
  }
  send();
  for (const limiter::Outcome outcome :
       {limiter::Outcome::kAllowed, limiter::Outcome::kDenied, limiter::Outcome::kNeverFits,
        limiter::Outcome::kUnavailable}) {
    const uint64_t count = counts[static_cast<size_t>(outcome)];
    if (count > 0) own_.Observe(outcome, count);
  }
}

}  // namespace headgate::front::resp
