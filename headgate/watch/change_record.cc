#include "headgate/watch/change_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace headgate::watch {
namespace {

using nlohmann::ordered_json;

std::string TextOf(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::string> OptionalText(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace

std::string ChangeAsJson(const rule::PastChange& change, std::string_view instance,
                         size_t bytes_max) {
  ordered_json object = {{"id", change.id}};
  object["time"] = change.time;
  const auto add = [&](const char* name, std::string_view value) {
    if (!value.empty()) object[name] = value;
  };
  add("user", change.user);
  add("address", change.address);
  add("instance", instance);
  add("action", change.action);
  add("document", change.document);
  add("old_version", change.old_version);
  add("new_version", change.new_version);
  add("outcome", change.outcome);
  const auto dump = [&] {
    return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  ordered_json without_texts = object;
  if (change.old_text) object["old_text"] = *change.old_text;
  if (change.new_text) object["new_text"] = *change.new_text;
  if (change.texts_left_out) object["texts_left_out"] = true;
  std::string text = dump();
  if (text.size() <= bytes_max) return text;
  object = std::move(without_texts);
  object["texts_left_out"] = true;
  return dump();
}

std::optional<rule::PastChange> ChangeFromJson(std::string_view text) {
  const ordered_json object = ordered_json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
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
                          .texts_left_out = object.contains("texts_left_out")};
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
