#include "headgate/limiter/question.h"

#include "headgate/limiter/work.h"

namespace headgate::limiter {

Question::Question(std::function<void()> on_ready) : pending_(std::move(on_ready)) {}

Question::~Question() = default;

}  // namespace headgate::limiter
