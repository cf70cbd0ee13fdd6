#include "headgate/http/head_scan.h"

#include <algorithm>

namespace headgate::http {
namespace {

constexpr Refusal kLineTooLong{414, "the request line is too long",
                               "send long data as the body of a POST"};
constexpr Refusal kHeadTooLong{431, "the head of the request is too long",
                               "send fewer or shorter fields"};
constexpr Refusal kBareLineEnd{400, "a line of the head does not end with CR LF", kAmbiguous};
constexpr Refusal kFolded{400, "a field is folded over several lines", kAmbiguous};

}  // namespace

HeadScan::Result HeadScan::Continue(std::string_view bytes, const Bounds& bounds) {
  // A violation at byte `at` counts only if no bound was exceeded before that byte.
  const auto refuse = [&](const Refusal& refusal, size_t at) -> Result {
    return {.refusal = at < bounds.head_bytes_max ? refusal : kHeadTooLong};
  };
  while (true) {
    if (line_begin_ > 0 && line_begin_ < bytes.size() &&
        (bytes[line_begin_] == ' ' || bytes[line_begin_] == '\t')) {
      return refuse(kFolded, line_begin_);
    }
    const size_t cr = std::min(bytes.find('\r', searched_), bytes.size());
    const size_t lf = std::min(bytes.find('\n', searched_), bytes.size());
    // The byte that ends the line or shows that it ends incorrectly; the end of the input if there
    // is neither.
    const size_t decided = std::min({lf, cr + 1, bytes.size()});
    if (line_begin_ == 0 && decided > bounds.line_bytes_max)
      return refuse(kLineTooLong, bounds.line_bytes_max);
    if (decided == bytes.size()) {
      if (bytes.size() > bounds.head_bytes_max) return {.refusal = kHeadTooLong};
      searched_ = std::min(cr, bytes.size());  // a CR at the end waits for its LF
      return {};
    }
    if (decided != lf || lf != cr + 1) return refuse(kBareLineEnd, decided);
    const bool is_empty = cr == line_begin_;
    line_begin_ = searched_ = lf + 1;
    if (!is_empty) continue;
    const size_t head_size = lf + 1;
    Reset();
    if (head_size > bounds.head_bytes_max) return {.refusal = kHeadTooLong};
    return {.head_size = head_size};
  }
}

}  // namespace headgate::http
