// The fields of a header block in nghttp2's form. Points to texts that it does not own.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "headgate/http/fields.h"
#include "headgate/http/http2/field_rules.h"
#include "headgate/http/shared_rules.h"

namespace headgate::http::http2 {

class FieldList {
 public:
  // `name` may have capitals; nghttp2 writes it in lower case.
  void Add(std::string_view name, std::string_view value) {
    fields_.push_back({.name = Bytes(name),
                       .value = Bytes(value),
                       .namelen = name.size(),
                       .valuelen = value.size(),
                       .flags = NGHTTP2_NV_FLAG_NONE});
  }
  // Without fields whose meaning is elsewhere in a head.
  void Add(const Fields& fields) {
    for (const auto [name, value] : fields) {
      if (!IsImplied(KindOf(name))) Add(name, value);
    }
  }

  // Without fields that must not be in trailers.
  void AddTrailers(const Fields& fields) {
    for (const auto [name, value] : fields) {
      if (MayBeInTrailer(name, {})) Add(name, value);
    }
  }

  const nghttp2_nv* data() const { return fields_.data(); }
  size_t size() const { return fields_.size(); }

 private:
  // nghttp2 does not write to them.
  static uint8_t* Bytes(std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  }

  absl::InlinedVector<nghttp2_nv, 24> fields_;
};

}  // namespace headgate::http::http2
