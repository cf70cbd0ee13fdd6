// The admin address on one event loop: metrics, health, and the rules if the process has any. The
// parts of the process add routes of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headgate/access/access.h"
#include "headgate/app/runtime/engine.h"
#include "headgate/app/settings/settings.h"
#include "headgate/front/admin/routes.h"
#include "headgate/front/mux/handler_sessions.h"
#include "headgate/front/mux/mux.h"
#include "headgate/http/routing/router.h"
#include "headgate/net/event_loop.h"
#include "headgate/watch/posted_editor.h"

namespace headgate::app {

// The same for all loops.
struct AdminOptions {
  AdminOptions(const Settings& settings, std::string its_title, front::admin::AdminSources its_data,
               access::Access& its_access, Engine& its_engine);

  const std::string title;  // in the description of the address
  const front::admin::AdminSources sources;
  access::Access& access;
  Engine& engine;
  const front::mux::HandlerSessionOptions http;
  const base::Duration edits_answer_within;
};

class AdminFront {
 public:
  // `editor` is null if the process has no rules. All must outlive this object.
  AdminFront(const AdminOptions& options, watch::EditorThread* editor, net::EventLoop& loop);
  AdminFront(const AdminFront&) = delete;

  http::routing::Router& router() { return router_; }
  // Its requests count as those of these fronts. Call it before Chooser.
  void CountAs(net::RequestMeter& resp, net::RequestMeter& http) {
    resp_meter_ = &resp;
    http_meter_ = &http;
  }
  net::SessionChooser Chooser();
  // While the loop does not run.
  void LeaveLoop();

  // From any thread.
  const http::http2::Counters& http2_counters() const { return http2_counters_; }
  const front::mux::Counters& sessions() const { return counters_; }

 private:
  net::RequestMeter* resp_meter_ = nullptr;
  net::RequestMeter* http_meter_ = nullptr;
  http::http2::Counters http2_counters_;
  front::mux::Counters counters_;
  std::optional<watch::PostedEditor> editor_;
  http::routing::Router router_;
  front::mux::HandlerSessions sessions_;
};

}  // namespace headgate::app
