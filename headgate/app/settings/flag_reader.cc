#include "headgate/app/settings/flag_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/rule/duration.h"
#include "headgate/rule/quote.h"

namespace headgate::app {

void FlagReader::Refuse(std::string_view what, std::string_view hint) {
  if (!std::exchange(ok_, false)) return;
  const std::string_view flag = what.substr(0, what.find_first_of(" :"));
  const std::string_view place = sources_ == nullptr ? "" : sources_->PlaceOf(flag);
  console_.Error(place.empty() ? std::string(what) : fmt::format("{}: {}", place, what), hint);
}

base::Duration FlagReader::Time(std::string_view flag, std::string_view text) {
  const auto time = rule::ParseDuration(text);
  if (time.ok() && *time >= std::chrono::milliseconds(1) && *time <= std::chrono::hours(24 * 365))
    return *time;
  Refuse(fmt::format("{} {} is not a duration from 1ms to 365d", flag, rule::Quote(text)),
         fmt::format("for example {} 10s", flag));
  return {};
}

uint64_t FlagReader::Number(std::string_view flag, uint64_t number, uint64_t max) {
  if (number < 1 || number > max)
    Refuse(fmt::format("{} must be from 1 to {}", flag, max), fmt::format("{} 100", flag));
  return number;
}

size_t FlagReader::Choice(std::string_view flag, std::string_view word,
                          std::initializer_list<std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  Refuse(fmt::format("{} {} is not one of: {}", flag, rule::Quote(word), fmt::join(words, ", ")),
         fmt::format("{} {}", flag, *words.begin()));
  return 0;
}

ListenAddress FlagReader::Address(std::string_view flag, std::string_view text) {
  auto address = ParseListenAddress(text);
  if (!address.ok()) {
    Refuse(fmt::format("{}: {}", flag, std::string(address.status().message())),
           fmt::format("for example {} 127.0.0.1:8080, :8080 or unix:PATH", flag));
    return {};
  }
  return *std::move(address);
}

}  // namespace headgate::app
