#include "headgate/app/runtime/admin_front.h"

#include <algorithm>
#include <utility>

#include "headgate/front/admin/document_routes.h"
#include "headgate/front/admin/figure_routes.h"
#include "headgate/front/admin/passthrough_route.h"
#include "headgate/front/admin/rule_routes.h"

namespace headgate::app {
namespace {

// The longest document that the admin address takes.
constexpr uint64_t kDocumentBytesMax = uint64_t{8} << 20;

}  // namespace

AdminOptions::AdminOptions(const Settings& settings, std::string its_title,
                           front::admin::AdminSources its_data, access::Access& its_access,
                           Engine& its_engine)
    : title(std::move(its_title)),
      sources(std::move(its_data)),
      access(its_access),
      engine(its_engine),
      http({.body_bytes_max = std::max(settings.max_body_bytes, kDocumentBytesMax),
            .hosts = http::KnownHosts(settings.known_host),
            .clock = &its_engine.clock().source()},
           settings.request_timeout),
      // Shorter than request_timeout, so that the answer comes before the connection is closed.
      edits_answer_within(settings.request_timeout * 3 / 4) {}

AdminFront::AdminFront(const AdminOptions& options, watch::EditorThread* editor,
                       net::EventLoop& loop)
    : router_(options.title, options.access,
              [&loop](std::function<void()> work) { loop.Post(std::move(work)); }),
      sessions_(router_, options.http, http2_counters_) {
  front::admin::AddRoutes(options.sources, router_);
  Engine& engine = options.engine;
  front::admin::AddFigureRoutes(engine.metrics(), editor == nullptr ? nullptr : &engine.top_keys(),
                                router_);
  if (editor == nullptr) return;
  front::admin::AddPassthroughRoute(
      {.is_on = [&engine] { return engine.limiter().passthrough(); },
       .set = [&engine](bool on,
                        const rule::Author& author) { engine.SetPassthrough(on, author); }},
      router_);
  editor_.emplace(*editor, loop, options.edits_answer_within);
  front::admin::AddDocumentRoutes(*editor_, router_);
  front::admin::AddRuleRoutes(*editor_, router_);
}

net::SessionChooser AdminFront::Chooser() {
  return front::mux::Mux({.resp = {},
                          .http1 = sessions_.Http1(),
                          .http2 = sessions_.Http2(),
                          .resp_meter = resp_meter_,
                          .http_meter = http_meter_},
                         counters_);
}

void AdminFront::LeaveLoop() {
  if (editor_) editor_->LeaveLoop();
}

}  // namespace headgate::app
