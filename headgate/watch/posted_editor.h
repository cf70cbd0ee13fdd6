// The editor of rules for the thread of one front. The sources of rules live on another thread, so
// each call goes there and its result comes back. A call that takes longer than a request may take
// is not cancelled, but its result is Unknown.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/net/event_loop.h"
#include "headgate/rule/editor.h"

namespace headgate::watch {

// The thread that the sources of rules live on, and the calls in progress there.
struct EditorThread {
  // Takes no more calls, and runs the loop until the calls in progress have ended, for at most
  // kEndTimeout. Call it on that thread, while nobody else runs the loop.
  void End();

  static constexpr base::Duration kEndTimeout = std::chrono::seconds(2);

  rule::Editor& editor;
  net::EventLoop& loop;
  std::atomic<uint32_t> under_way{0};
  // No call is taken any more, because the loop is about to end.
  std::atomic<bool> closed{false};
};

class PostedEditor final : public rule::Editor {
 public:
  // The most calls in progress at once, of all fronts. Further ones are Unavailable.
  static constexpr uint32_t kUnderWayMax = 100;

  // `own` is the loop of the front, on whose thread it is called. It must outlive this object, or
  // LeaveLoop must be called when it has ended.
  PostedEditor(EditorThread& thread, net::EventLoop& own, base::Duration answer_within);

  // While the loop does not run. From then on no call is given up.
  void LeaveLoop() { late_timer_.reset(); }

  void List(OnStates done) override;
  void Read(std::string_view name, OnDocument done) override;
  std::string NameOfLimit(std::string_view key) const override {
    return thread_.editor.NameOfLimit(key);
  }
  void Change(const rule::Edit& edit, OnEdited done) override;
  void ReadRule(const rule::RulePath& rule, OnDocument done) override;
  void ChangeRule(const rule::RuleEdit& edit, OnEdited done) override;
  void RollBack(const rule::Rollback& rollback, OnEdited done) override;
  void History(std::string_view document, size_t count, OnChanges done) override;
  void Confirm(const rule::Author& author, std::function<void(absl::Status)> done) override;

 private:
  // OK if a call may begin; it is then in progress.
  absl::Status Begin();
  // Calls `ask` on the editor's thread, with a callback that brings the result back. If no call may
  // begin, the result is that status.
  template <typename Result, typename Ask>
  void Post(std::function<void(Result)> done, Ask ask);
  void GiveUpLateOnes();

  // A call whose result has not come back.
  struct Waiting {
    base::BootTime until;
    std::function<void(absl::Status)> give_up;
  };

  EditorThread& thread_;
  net::EventLoop& own_;
  const base::Duration answer_within_;
  uint64_t last_call_ = 0;
  std::map<uint64_t, Waiting> waiting_;   // by number, so the first one waits longest
  std::optional<net::Timer> late_timer_;  // until LeaveLoop
};

}  // namespace headgate::watch
