#include "headgate/proxy/upstream/control_routes.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "headgate/http/problem.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/json.h"

namespace headgate::proxy::upstream {
namespace {

using wire::Json;

constexpr std::string_view kPath = "/v1/sidecar";
constexpr std::string_view kExample =
    R"(for example {"mode":"passthrough"} or {"upstream":"http://127.0.0.1:9000"})";

std::string_view Name(share::Mode mode) {
  return mode == share::Mode::kEnforce ? "enforce" : "passthrough";
}

void AnswerState(const ProxyControl& control, http::Response& response) {
  Json state =
      Json::Object({{"mode", Name(control.mode())}, {"upstream", ToString(control.upstreams())}});
  for (const Names::State& name : control.names()) {
    Json& addresses = state["names"][name.name.ToString()] = Json::Array();
    for (const net::StreamTarget& address : name.addresses) addresses.Append(address.ToString());
  }
  const std::vector<Health::Address> all = control.addresses();
  if (!all.empty()) state["addresses"] = Json::Array();
  for (const Health::Address& address : all) {
    const bool is_well = address.loops_aside == 0;
    Json described = Json::Object({{"address", address.name},
                                   {"health", is_well ? "well" : "set_aside"},
                                   {"requests_in_progress", address.in_progress}});
    if (!is_well) described.Add("reason", address.reason);
    state["addresses"].Append(std::move(described));
  }
  response.AddField("Content-Type", "application/json");
  response.body = state.Text() + "\n";
}

// The wanted changes, or what is wrong with them.
struct Change {
  std::optional<share::Mode> mode{};
  std::optional<List> upstreams{};
};

absl::StatusOr<Change> ReadChange(std::string_view body, const List& now) {
  const Json read = Json::Parse(body, Json::kRequestValuesMax).value_or(nullptr);
  if (!read.is_object()) return absl::InvalidArgumentError("the body is not a JSON object");
  for (const auto& [name, value] : read.members()) {
    if (name != "mode" && name != "upstream") {
      return absl::InvalidArgumentError(fmt::format(
          "{} cannot be changed while the sidecar runs; mode and upstream can", rule::Quote(name)));
    }
  }
  Change change;
  for (const auto& [name, value] : read.members()) {
    if (!value.is_string())
      return absl::InvalidArgumentError(fmt::format("{} is not a text", rule::Quote(name)));
    const std::string_view text = value.text();
    if (name == "mode" && text == "enforce") {
      change.mode = share::Mode::kEnforce;
    } else if (name == "mode" && text == "passthrough") {
      change.mode = share::Mode::kPassthrough;
    } else if (name == "mode") {
      return absl::InvalidArgumentError("the mode is neither enforce nor passthrough");
    } else {
      HEADGATE_ASSIGN_OR_RETURN(change.upstreams, ParseList(text));
      if (!change.upstreams->SameScheme(now))
        return absl::InvalidArgumentError("another scheme needs a restart");
    }
  }
  return change;
}

}  // namespace

void AddControlRoutes(ProxyControl control, http::routing::Router& router) {
  const auto shared = std::make_shared<const ProxyControl>(std::move(control));
  router.Add({.methods = {"GET"},
              .path = std::string(kPath),
              .what = "the mode and the upstream",
              .needs = access::Right::kRead,
              .handle = [shared](const http::Request&, http::Response& response, base::Instant) {
                AnswerState(*shared, response);
              }});
  router.Add(
      {.methods = {"PATCH"},
       .path = std::string(kPath),
       .what = "changes the mode or the upstream",
       .needs = access::Right::kAdmin,
       .handle = [shared](const http::Request& request, http::Response& response, base::Instant) {
         auto change = ReadChange(request.body, shared->upstreams());
         if (!change.ok()) {
           return http::AnswerProblem(400, std::string(change.status().message()), kExample,
                                      response);
         }
         if (change->mode) shared->set_mode(*change->mode);
         if (change->upstreams) shared->set_upstreams(*std::move(change->upstreams));
         AnswerState(*shared, response);
       }});
}

}  // namespace headgate::proxy::upstream
