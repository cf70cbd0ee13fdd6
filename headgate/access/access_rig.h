// For tests: work that other threads post to the thread of a test, and rights without logins.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "headgate/access/user_table.h"

namespace headgate::access {

// Everybody has these rights without a login, and nobody can log in.
inline std::shared_ptr<const UserTable> Everybody(Rights rights) {
  return std::make_shared<UserTable>(UserTable{.users = {}, .anonymous = rights});
}

class PostedWork {
 public:
  void Add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    added_.notify_one();
  }

  // Runs the next work once it is there. Returns false if none comes in ten seconds.
  bool RunNext() {
    std::unique_lock lock(mutex_);
    if (!added_.wait_for(lock, std::chrono::seconds(10), [this] { return !work_.empty(); }))
      return false;
    const std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    next();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> work_;
};

}  // namespace headgate::access
