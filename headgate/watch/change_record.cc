#include "headgate/watch/change_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "headgate/wire/json.h"

namespace headgate::watch {
namespace {

using wire::Json;

std::string TextOf(const Json& object, std::string_view name) {
  return std::string(object[name].text());
}

std::optional<std::string> OptionalText(const Json& object, std::string_view name) {
  if (!object[name].is_string()) return std::nullopt;
  return TextOf(object, name);
}

}  // namespace

std::string ChangeAsJson(const rule::PastChange& change, std::string_view instance,
                         size_t bytes_max) {
  Json object = Json::Object({{"id", change.id}});
  object.Add("time", change.time);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) object.Add(name, value);
  };
  add("user", change.user);
  add("address", change.address);
  add("instance", instance);
  add("action", change.action);
  add("document", change.document);
  add("old_version", change.old_version);
  add("new_version", change.new_version);
  add("outcome", change.outcome);
  Json without_texts = object;
  if (change.old_text) object.Add("old_text", *change.old_text);
  if (change.new_text) object.Add("new_text", *change.new_text);
  if (change.texts_left_out) object.Add("texts_left_out", true);
  std::string text = object.Text();
  if (text.size() <= bytes_max) return text;
  without_texts.Add("texts_left_out", true);
  return without_texts.Text();
}

std::optional<rule::PastChange> ChangeFromJson(std::string_view text) {
  const Json object = Json::Parse(text).value_or(nullptr);
  rule::PastChange change{.id = TextOf(object, "id"),
                          .time = TextOf(object, "time"),
                          .user = TextOf(object, "user"),
                          .address = TextOf(object, "address"),
                          .action = TextOf(object, "action"),
                          .document = TextOf(object, "document"),
                          .old_version = TextOf(object, "old_version"),
                          .new_version = TextOf(object, "new_version"),
                          .outcome = TextOf(object, "outcome"),
                          .old_text = OptionalText(object, "old_text"),
                          .new_text = OptionalText(object, "new_text"),
                          .texts_left_out = object.Find("texts_left_out") != nullptr};
  if (change.id.empty()) return std::nullopt;
  return change;
}

std::string TimeAsText(base::WallTime time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(base::Duration(time.ns));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(ms);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(seconds.count())),
                     (ms - seconds).count());
}

}  // namespace headgate::watch
