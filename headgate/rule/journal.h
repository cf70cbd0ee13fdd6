// Stores notes about the changes that people make to documents: in a file, or in nodes of an
// ensemble.
//
// A note is a line of JSON (watch/change_record.h). Everything happens on the thread of one event
// loop; `done` is called on it, possibly before the call returns.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::rule {

struct Note {
  std::string id;        // unique
  std::string document;  // the document that the note is about
  std::string text;      // one line
};

class Journal {
 public:
  using OnNoted = std::function<void(const absl::Status& status)>;
  using OnNotes = std::function<void(absl::StatusOr<std::vector<Note>> notes)>;

  virtual ~Journal() = default;

  // The longest text of a note.
  virtual size_t text_bytes_max() const = 0;
  // Keeps the note before `done` is called with OK, also if the machine then fails. A note with the
  // id of an earlier one replaces it.
  virtual void Put(const Note& note, OnNoted done) = 0;
  // The latest notes, at most `count`, the newest first, in the order in which they were first put,
  // whatever the clocks of their writers said. About all documents if `document` is empty.
  virtual void Read(std::string_view document, size_t count, OnNotes done) = 0;
};

}  // namespace headgate::rule
