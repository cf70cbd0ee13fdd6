#include "headgate/watch/zookeeper/comparison.h"

#include <utility>

namespace headgate::watch::zookeeper {

Comparison::Comparison(net::EventLoop& loop, base::Duration pause, Callbacks callbacks)
    : pause_(pause),
      callbacks_(std::move(callbacks)),
      timer_(loop, [this] { Begin(); }),
      look_timer_(loop, [this] { LookAtMore(); }) {
  timer_.SetAfter(pause_);
}

void Comparison::Begin() {
  paths_ = callbacks_.paths();
  LookAtMore();
}

void Comparison::LookAtMore() {
  ++unanswered_;  // counts this call, so that an answer within it does not end the comparison
  for (size_t i = 0; i < kLooksAtOnce && !paths_.empty(); ++i) {
    const std::string path = std::move(paths_.back());
    paths_.pop_back();
    ++unanswered_;
    callbacks_.look(path, [this, path](const Stat& stat) {
      if (callbacks_.compare(path, stat)) missed_.push_back(path);
      --unanswered_;
      EndIfAnswered();
    });
  }
  --unanswered_;
  if (!paths_.empty()) return look_timer_.SetAfter(kLookPause);
  EndIfAnswered();
}

void Comparison::EndIfAnswered() {
  if (unanswered_ > 0 || !paths_.empty()) return;
  if (!missed_.empty()) callbacks_.on_missed(std::exchange(missed_, {}));
  timer_.SetAfter(pause_);
}

}  // namespace headgate::watch::zookeeper
