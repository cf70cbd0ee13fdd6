// Finds the end of a request's head while its bytes arrive. Refuses at once a line that does not
// end with CR LF, a folded field, or an exceeded bound. The first violation in byte order decides,
// so the result does not depend on how the bytes were split into reads.
#pragma once

#include <cstddef>
#include <string_view>

#include "headgate/http/bounds.h"

namespace headgate::http {

class HeadScan {
 public:
  struct Result {
    size_t head_size = 0;  // 0: the head is incomplete
    Refusal refusal{};
  };

  // `bytes` begins with the request line and grows from call to call; no byte is scanned twice.
  // After a complete head, the next call starts a new one.
  Result Continue(std::string_view bytes, const Bounds& bounds);

  // Whether any byte of the request line has arrived.
  bool begun() const { return searched_ > 0; }
  void Reset() { line_begin_ = searched_ = 0; }

 private:
  size_t line_begin_ = 0;  // start of the first line whose end has not been seen
  size_t searched_ = 0;    // no line end between line_begin_ and here
};

}  // namespace headgate::http
