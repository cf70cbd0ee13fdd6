#include "headgate/watch/posted_editor.h"

namespace headgate::watch {

void EditorThread::End() {
  closed.store(true);
  loop.RunUntil([this] { return under_way.load() == 0; }, kEndTimeout);
}

PostedEditor::PostedEditor(EditorThread& thread, net::EventLoop& own, base::Duration answer_within)
    : thread_(thread),
      own_(own),
      answer_within_(answer_within),
      late_timer_(std::in_place, own, [this] { GiveUpLateOnes(); }) {}

absl::Status PostedEditor::Begin() {
  if (thread_.closed.load()) return absl::UnavailableError("the server is going down");
  if (thread_.under_way.fetch_add(1) < kUnderWayMax) return absl::OkStatus();
  thread_.under_way.fetch_sub(1);
  return absl::UnavailableError("too many requests to the rules are in progress; try again");
}

template <typename Result, typename Ask>
void PostedEditor::Post(std::function<void(Result)> done, Ask ask) {
  if (absl::Status status = Begin(); !status.ok()) return done(Result{std::move(status)});
  const uint64_t number = ++last_call_;
  waiting_[number] = {.until = own_.Now() + answer_within_,
                      .give_up = [done](absl::Status why) { done(Result{std::move(why)}); }};
  if (late_timer_ && waiting_.size() == 1) late_timer_->Set(waiting_.begin()->second.until);
  auto bring_back = [this, number, &thread = thread_, done = std::move(done)](Result result) {
    own_.Post([this, number, done, result = std::move(result)]() mutable {
      if (waiting_.erase(number) > 0) done(std::move(result));
    });
    thread.under_way.fetch_sub(1);
  };
  thread_.loop.Post([&editor = thread_.editor, ask = std::move(ask),
                     bring_back = std::move(bring_back)] { ask(editor, bring_back); });
}

void PostedEditor::GiveUpLateOnes() {
  while (!waiting_.empty() && waiting_.begin()->second.until <= own_.Now()) {
    const auto late = waiting_.extract(waiting_.begin());
    late.mapped().give_up(absl::UnknownError("the sources of rules have not answered in time"));
  }
  if (!waiting_.empty()) late_timer_->Set(waiting_.begin()->second.until);
}

void PostedEditor::List(OnStates done) {
  Post(std::move(done),
       [](rule::Editor& editor, const auto& bring_back) { editor.List(bring_back); });
}

void PostedEditor::Read(std::string_view name, OnDocument done) {
  Post(std::move(done), [name = std::string(name)](rule::Editor& editor, const auto& bring_back) {
    editor.Read(name, bring_back);
  });
}

void PostedEditor::Change(const rule::Edit& edit, OnEdited done) {
  Post(std::move(done),
       [edit](rule::Editor& editor, const auto& bring_back) { editor.Change(edit, bring_back); });
}

void PostedEditor::ReadRule(const rule::RulePath& rule, OnDocument done) {
  Post(std::move(done),
       [rule](rule::Editor& editor, const auto& bring_back) { editor.ReadRule(rule, bring_back); });
}

void PostedEditor::ChangeRule(const rule::RuleEdit& edit, OnEdited done) {
  Post(std::move(done), [edit](rule::Editor& editor, const auto& bring_back) {
    editor.ChangeRule(edit, bring_back);
  });
}

void PostedEditor::RollBack(const rule::Rollback& rollback, OnEdited done) {
  Post(std::move(done), [rollback](rule::Editor& editor, const auto& bring_back) {
    editor.RollBack(rollback, bring_back);
  });
}

void PostedEditor::History(std::string_view document, size_t count, OnChanges done) {
  Post(std::move(done),
       [document = std::string(document), count](rule::Editor& editor, const auto& bring_back) {
         editor.History(document, count, bring_back);
       });
}

void PostedEditor::Confirm(const rule::Author& author, std::function<void(absl::Status)> done) {
  Post(std::move(done), [author](rule::Editor& editor, const auto& bring_back) {
    editor.Confirm(author, bring_back);
  });
}

}  // namespace headgate::watch
