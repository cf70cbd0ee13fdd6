// A change of a document as a line of JSON, for the audit log:
//
//   {"id":"…","time":"2026-11-25T14:22:33.123Z","user":"ann","address":"10.0.0.7","instance":"web-3",
//    "action":"put","document":"/etc/headgate/edge.yaml","old_version":"…","new_version":"…",
//    "outcome":"done","old_text":"…","new_text":"…"}
//
// Members without a value are absent. `outcome` is "begun" in the first note, which is written
// before anything is changed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/rule/editor.h"

namespace headgate::watch {

// Without line breaks. If it were longer than `bytes_max`, the texts are left out.
std::string ChangeAsJson(const rule::PastChange& change, std::string_view instance,
                         size_t bytes_max);

// Nothing if the text is not such a line.
std::optional<rule::PastChange> ChangeFromJson(std::string_view text);

// RFC 3339 with milliseconds, in UTC: "2026-11-25T14:22:33.123Z".
std::string TimeAsText(base::WallTime time);

}  // namespace headgate::watch
