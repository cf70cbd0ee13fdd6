// The routes that change the documents of the rules:
//
//   GET  /v1/documents               the documents of all sources, and how they are
//   GET, PUT, DELETE /v1/documents/NAME   one document; NAME is percent-encoded
//   GET, PUT, DELETE /v1/limits/KEY  the limit of one API key, if a source holds such
//   GET  /v1/history?document=NAME&count=N   who changed what
//   POST /v1/rollback                back to an earlier text
//   POST /v1/confirm                 deletions that were taken for an accident were meant
//
// Reading needs access to state; changing needs the right `admin`. PUT and DELETE need If-Match
// with the ETag that was read, or If-None-Match: * for a new document; the second of two concurrent
// changes gets 412. With ?dry_run=true nothing is changed, and the answer shows the effect that the
// change would have. See docs/reference/admin-api.md.
#pragma once

#include "headgate/http/routing/router.h"
#include "headgate/rule/editor.h"

namespace headgate::front::admin {

// Adds the routes. `editor` calls back on the router's thread, and must outlive the router.
void AddDocumentRoutes(rule::Editor& editor, http::routing::Router& router);

}  // namespace headgate::front::admin
