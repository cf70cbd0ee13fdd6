// Shows on a terminal that a command is still at work, once a second:
//
//      1s  reading the rules
//      2s  reading the rules
//
// Work that is done within a second shows nothing, and neither does any work if the console's `err`
// is not a terminal.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "headgate/app/settings/console.h"
#include "headgate/base/time.h"

namespace headgate::app {

// The work lasts as long as this object, which writes from a thread of its own. Nobody else may
// write to the console's `err` meanwhile.
class Progress {
 public:
  // `second`: how long a second lasts, for tests.
  Progress(const Console& console, std::string what,
           base::Duration second = std::chrono::seconds(1));
  ~Progress();
  Progress(const Progress&) = delete;

 private:
  void Show();

  const Console& console_;
  const std::string what_;
  const base::Duration second_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;  // none if nothing is shown
};

}  // namespace headgate::app
