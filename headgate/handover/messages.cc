#include "headgate/handover/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "headgate/base/text.h"

namespace headgate::handover {
namespace {

constexpr std::string_view kFirstLine = "headgate sidecar 1";
constexpr std::string_view kPassthrough = "passthrough";
constexpr std::string_view kEnforce = "enforce";

absl::Status WrongState(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("the state has a wrong {}", what));
}

std::string_view NameOf(share::Mode mode) {
  return mode == share::Mode::kPassthrough ? kPassthrough : kEnforce;
}

std::optional<share::Mode> ModeNamed(std::string_view name) {
  if (name == kPassthrough) return share::Mode::kPassthrough;
  if (name == kEnforce) return share::Mode::kEnforce;
  return std::nullopt;
}

// Removes and returns the text up to a separator, and removes the separator.
std::string_view TakeUntil(char separator, std::string_view& rest) {
  const std::string_view taken = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

// Numbers with a space between each two.
template <size_t kCount>
std::optional<std::array<int64_t, kCount>> NumbersIn(std::string_view text) {
  std::array<int64_t, kCount> numbers{};
  for (int64_t& number : numbers) {
    const std::string_view word = TakeUntil(' ', text);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0) return std::nullopt;
  }
  return text.empty() ? std::optional(numbers) : std::nullopt;
}

absl::Status ReadMode(std::string_view text, SidecarState& state) {
  const std::optional<share::Mode> now = ModeNamed(TakeUntil(' ', text));
  const std::optional<share::Mode> flag = ModeNamed(text);
  if (!now || !flag) return WrongState("mode");
  state.mode = {.now = *now, .flag = *flag};
  return absl::OkStatus();
}

absl::Status ReadFound(std::string_view text, SidecarState& state) {
  const auto numbers = NumbersIn<3>(text);
  if (!numbers || (*numbers)[1] > std::numeric_limits<uint32_t>::max() ||
      (*numbers)[2] > base::kDurationMax.count())
    return WrongState("capacity");
  state.pool.found = {.per_1000_s = static_cast<uint64_t>((*numbers)[0]),
                      .limit = static_cast<uint32_t>((*numbers)[1]),
                      .latency_base = base::Duration((*numbers)[2])};
  return absl::OkStatus();
}

absl::Status ReadInstances(std::string_view text, SidecarState& state) {
  const auto numbers = NumbersIn<1>(text);
  if (!numbers || (*numbers)[0] > std::numeric_limits<uint32_t>::max())
    return WrongState("number of instances");
  state.instances = static_cast<uint32_t>((*numbers)[0]);
  return absl::OkStatus();
}

// Takes the bytes behind the line, too.
absl::Status ReadPool(std::string_view text, std::string_view& rest, SidecarState& state) {
  const auto numbers = NumbersIn<2>(text);
  if (!numbers || (*numbers)[0] > base::kInstantMax.ns ||
      static_cast<uint64_t>((*numbers)[1]) > rest.size())
    return WrongState("pool");
  const auto size = static_cast<size_t>((*numbers)[1]);
  state.pool.at = base::Instant::FromNanos((*numbers)[0]);
  state.pool.shares = rest.substr(0, size);
  rest.remove_prefix(size);
  return absl::OkStatus();
}

}  // namespace

std::string Write(const AddressMessage& message) {
  return fmt::format("{}\n{}", message.name, message.bound.ToString());
}

absl::StatusOr<AddressMessage> ParseAddressMessage(std::string_view text) {
  const std::string_view name = TakeUntil('\n', text);
  HEADGATE_ASSIGN_OR_RETURN(net::Endpoint bound, net::ParseEndpoint(text));
  return AddressMessage{.name = std::string(name), .bound = std::move(bound)};
}

std::string Write(const SidecarState& state) {
  std::string text = fmt::format("{}\n", kFirstLine);
  if (state.mode)
    text += fmt::format("mode {} {}\n", NameOf(state.mode->now), NameOf(state.mode->flag));
  if (const auto& upstream = state.upstream)
    text += fmt::format("upstream {}\nupstream_flag {}\n", upstream->now, upstream->flag);
  for (const NamedAddress& one : state.addresses)
    text += fmt::format("address {} {}\n", one.name, one.address);
  if (const auto& found = state.pool.found) {
    text += fmt::format("found {} {} {}\n", found->per_1000_s, found->limit,
                        found->latency_base.count());
  }
  if (state.instances > 0) text += fmt::format("instances {}\n", state.instances);
  text += fmt::format("pool {} {}\n", state.pool.at.ns, state.pool.shares.size());
  return text + state.pool.shares;
}

absl::StatusOr<SidecarState> ParseSidecarState(std::string_view bytes) {
  if (bytes.size() > kSidecarStateBytesMax) return WrongState("size");
  if (TakeUntil('\n', bytes) != kFirstLine) return WrongState("version");
  SidecarState state;
  LiveSetting<std::string> upstream;
  while (!bytes.empty()) {
    std::string_view line = TakeUntil('\n', bytes);
    const std::string_view name = TakeUntil(' ', line);
    if (name == "mode") HEADGATE_RETURN_IF_ERROR(ReadMode(line, state));
    if (name == "upstream") upstream.now = line;
    if (name == "upstream_flag") upstream.flag = line;
    if (name == "address" && state.addresses.size() < kNamedAddressesMax) {
      const std::string_view of = TakeUntil(' ', line);
      state.addresses.push_back({.name = std::string(of), .address = std::string(line)});
    }
    if (name == "found") HEADGATE_RETURN_IF_ERROR(ReadFound(line, state));
    if (name == "instances") HEADGATE_RETURN_IF_ERROR(ReadInstances(line, state));
    if (name == "pool") HEADGATE_RETURN_IF_ERROR(ReadPool(line, bytes, state));
  }
  if (!upstream.now.empty() && !upstream.flag.empty()) state.upstream = std::move(upstream);
  return state;
}

}  // namespace headgate::handover
