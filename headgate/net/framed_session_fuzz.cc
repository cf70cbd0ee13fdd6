// Feeds both sessions of framed_session.h the same requests in pieces, and completions in any
// order, as chosen by the input. Both must give the same answers for each id; the ordered session
// gives them in the order of the requests.
#include <algorithm>
#include <memory>
#include <string>

#include "headgate/base/check.h"
#include "headgate/net/framed_session.h"

namespace headgate::net {
namespace {

// Feeds a session like a connection: passes unconsumed bytes again, does not read while the session
// forbids it, and calls the session again after it woke.
class Reader {
 public:
  explicit Reader(Session& session) : session_(session) {
    session_.SetWaker([this] { woken_ = true; });
  }
  void Say(std::string_view bytes) {
    unread_ += bytes;
    Read();
  }
  void Settle() {
    if (!std::exchange(woken_, false)) return;
    Ask();
    Read();
  }
  std::string output;

 private:
  void Read() {
    if (progress_.stop_reading || unread_.empty()) return;
    rest_ += unread_;
    unread_.clear();
    Ask();
  }
  void Ask() {
    const size_t before = output.size();
    progress_ = session_.OnBytes(rest_, output, base::Instant::FromNanos(1));
    HEADGATE_CHECK(progress_.consumed <= rest_.size());
    HEADGATE_CHECK((progress_.answered > 0) == (output.size() > before));
    rest_.erase(0, progress_.consumed);
  }

  Session& session_;
  Session::Progress progress_;
  bool woken_ = false;
  std::string unread_;
  std::string rest_;
};

struct Side {
  explicit Side(bool ordered) {
    if (ordered) {
      session = std::make_unique<OrderedFramedSession>(completions);
    } else {
      session = std::make_unique<IndependentFramedSession>(completions);
    }
    reader = std::make_unique<Reader>(*session);
  }
  Completions completions;
  std::unique_ptr<Session> session;
  std::unique_ptr<Reader> reader;
};

}  // namespace

// A step is two bytes. Below 0x80: sends the next request, split into pieces by the bits of the
// second byte. Otherwise: completes a request that was sent.
void Run(std::span<const uint8_t> steps) {
  Side ordered(true);
  Side independent(false);
  std::string expected;
  uint64_t said = 0;
  const auto complete = [&](uint64_t request) {
    for (Side* side : {&ordered, &independent}) {
      side->completions.Complete(request);
      side->reader->Settle();
    }
  };
  for (size_t i = 0; i + 1 < steps.size() && said < 200; i += 2) {
    const uint8_t what = steps[i];
    const uint8_t how = steps[i + 1];
    if (what >= 0x80) {
      if (said > 0) complete(how % said);
      continue;
    }
    const Frame frame{.id = static_cast<uint8_t>(what % 16),
                      .kind = what < 0x40 ? 'n' : 'l',
                      .payload = std::string(how % 9, static_cast<char>('a' + said % 26))};
    expected += frame.Answer();
    ++said;
    const std::string whole = frame.Bytes();
    const size_t piece = 1 + how % 5;
    for (size_t at = 0; at < whole.size(); at += piece) {
      for (Side* side : {&ordered, &independent})
        side->reader->Say(std::string_view(whole).substr(at, piece));
    }
  }
  // Complete later requests first, as far as they have been read.
  for (uint64_t request = said; request-- > 0;) complete(request);
  HEADGATE_CHECK(ordered.reader->output == expected);
  const auto answers = ParseFramedAnswers(independent.reader->output);
  HEADGATE_CHECK(answers.has_value());
  auto sorted = *answers;
  auto wanted = *ParseFramedAnswers(expected);
  for (auto* side : {&sorted, &wanted}) {
    for (auto& [id, all] : *side) std::sort(all.begin(), all.end());
  }
  HEADGATE_CHECK(sorted == wanted);
}

}  // namespace headgate::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headgate::net::Run({data, size});
  return 0;
}
