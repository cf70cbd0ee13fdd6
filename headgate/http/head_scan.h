// Finds the end of a request's head while its bytes arrive, and refuses at once whatever ends a
// line otherwise than with CR LF, folds a field, or exceeds a bound. The first violation in byte
// order is the answer, so it does not depend on how the bytes were cut into reads.
#pragma once

#include <cstddef>
#include <string_view>

#include "headgate/http/bounds.h"

namespace headgate::http {

class HeadScan {
 public:
  struct Result {
    size_t head_size = 0;  // 0: the head is not whole yet
    Refusal refusal{};
  };

  // `bytes` begins with the request line and grows from call to call; nothing is scanned twice.
  // After a head that is whole, the next call begins another.
  Result Continue(std::string_view bytes, const Bounds& bounds);

  // Whether a byte of the request line has been seen.
  bool begun() const { return searched_ > 0; }
  void Reset() { line_begin_ = searched_ = 0; }

 private:
  size_t line_begin_ = 0;  // of the first line whose end has not been seen
  size_t searched_ = 0;    // no line ends between line_begin_ and here
};

}  // namespace headgate::http
