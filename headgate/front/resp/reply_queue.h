// The replies of a session that have to wait, in the order of the commands.
//
//              HG.CHECK a   HG.CHECK b        HG.PEEK c    PING
//  first call  waits        waits with it     waits        stays in the input
//  woken       written      written           written      read and answered
//
// A reply that is known before its turn is kept as text. A command that asks the store several
// times continues as soon as it can, before its turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/front/resp/late_reply.h"
#include "headgate/net/session.h"

namespace headgate::front::resp {

// One per session.
class ReplyQueue {
 public:
  // `wake` is called when no reply waits any more: one trip to the store serves a whole pipeline.
  explicit ReplyQueue(std::function<void()> wake) : wake_(std::move(wake)) {}
  ReplyQueue(const ReplyQueue&) = delete;
  ReplyQueue& operator=(const ReplyQueue&) = delete;

  bool empty() const { return items_.empty(); }
  // Whether a command of this kind may be executed now. A command that acquires a permit asks the
  // store a second time if its rule has other limits too; only commands of its own kind follow it,
  // because others would overtake its second question.
  bool Admits(CommandKind kind) const;
  // The place for the reply of the next command: `output`, or behind the replies that wait.
  std::string& OutputBehind(std::string& output);
  // The reply of this many commands comes later.
  void Add(std::unique_ptr<LateReply> reply, uint64_t commands = 1);
  // The reply that was just written has this permit.
  void Hold(std::unique_ptr<Acquiring> permit);

  // Appends the replies that are known, up to the first that is not.
  struct Written {
    uint64_t commands = 0;
    uint64_t errors = 0;
  };
  Written Write(std::string& output, base::Instant now);
  // From now on, the permits of the written replies belong to the clients, which release them by
  // id. Before this call, the destructor of the queue gives them back.
  void KeepPermits();
  // Whether it holds the permit of a reply that is not written, or will hold one that the store
  // grants.
  bool acquires() const;

  // How many commands have been added since the session began.
  uint64_t added_commands() const { return added_commands_; }
  // The memory that grows with the commands and their replies.
  size_t kept_bytes() const;

 private:
  friend class LateReply;

  static constexpr size_t kItemsMax = 64;  // as many as in a batch of CL.THROTTLE

  struct Item {
    std::unique_ptr<LateReply> late{};  // null: the reply is `text`
    std::string text{};
    std::unique_ptr<Acquiring> permit{};
    uint64_t commands = 1;
    bool has_error = false;
  };

  void Await(LateReply& late) {
    if (!std::exchange(late.waits_, true)) ++open_;
  }

  const std::function<void()> wake_;
  std::deque<Item> items_;
  size_t open_ = 0;  // how many replies wait
  uint64_t added_commands_ = 0;
  std::vector<std::unique_ptr<Acquiring>> written_;  // the permits of written replies
};

inline void LateReply::Wake() {
  if (std::exchange(waits_, false) && --queue_->open_ == 0) queue_->wake_();
}

}  // namespace headgate::front::resp
