// A password that is read each time it is needed, for instance for a new connection, because it may
// have been replaced meanwhile. Copies read from the same place.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace headgate::base {

class Secret {
 public:
  Secret() = default;
  // Always this text; an empty text means that there is no password.
  Secret(std::string text) : text_(std::move(text)) {}
  Secret(const char* text) : text_(text) {}
  // The text that `read` returns at each call, on any thread.
  explicit Secret(std::function<std::string()> read) : read_(std::move(read)) {}

  // Whether there is none.
  bool empty() const { return read_ == nullptr && text_.empty(); }
  std::string Now() const { return read_ != nullptr ? read_() : text_; }

 private:
  std::string text_;
  std::function<std::string()> read_;
};

}  // namespace headgate::base
