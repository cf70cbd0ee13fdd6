// The surroundings of a command that is answered now.
#pragma once

#include <string>

#include "headgate/base/time.h"
#include "headgate/front/resp/reply_queue.h"

namespace headgate::front::resp {

struct Turn {
  std::string& output;  // for its reply
  ReplyQueue& queue;    // for a reply that comes later
  base::Instant now;
};

}  // namespace headgate::front::resp
