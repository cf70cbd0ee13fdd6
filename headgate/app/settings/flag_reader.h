// Reads the values of flags, and reports the first problem.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "headgate/app/settings/console.h"
#include "headgate/app/settings/flag_sources.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/base/time.h"

namespace headgate::app {

// As soon as one value is refused, ok() is false, and the other values that were read have no
// meaning. Only the first problem is written to the console.
class FlagReader {
 public:
  // `sources`, if there are some, say where the values come from. They must outlive this object.
  explicit FlagReader(const Console& console, const FlagSources* sources = nullptr)
      : console_(console), sources_(sources) {}

  bool ok() const { return ok_; }
  void Refuse(std::string_view what, std::string_view hint);

  base::Duration Time(std::string_view flag, std::string_view text);
  // From 1 to `max`.
  uint64_t Number(std::string_view flag, uint64_t number, uint64_t max);
  // The position of `word` in `words`.
  size_t Choice(std::string_view flag, std::string_view word,
                std::initializer_list<std::string_view> words);
  ListenAddress Address(std::string_view flag, std::string_view text);

 private:
  const Console& console_;
  const FlagSources* sources_;
  bool ok_ = true;
};

}  // namespace headgate::app
