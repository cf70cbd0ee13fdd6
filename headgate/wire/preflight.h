// A preflight of CORS (Fetch, 4.8): before a page sends a request to another origin, its browser
// asks whether it may. A preflight names no client: it has no credentials, no fields of the page,
// and no body. So no limit by client can count it, and a refusal would hide the refusal of the
// request itself from the page.
//
//   OPTIONS /orders HTTP/1.1
//   Origin: https://app.example.com
//   Access-Control-Request-Method: POST
//   Access-Control-Request-Headers: x-api-key
//
// Anybody can send such a request. So it counts as a preflight only if it has no part that an
// application could act on.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate::wire {

class PreflightScan {
 public:
  void Add(std::string_view name, std::string_view value);
  // Whether a request of this method with the added fields, and without a body, is a preflight.
  bool IsPreflight(std::string_view method) const;

 private:
  uint32_t origins_ = 0;
  uint32_t methods_ = 0;  // Access-Control-Request-Method
  uint32_t headers_ = 0;  // Access-Control-Request-Headers
  bool has_more_ = false;
};

// `fields` is a range of pairs of name and value.
template <typename Fields>
bool IsPreflight(std::string_view method, const Fields& fields) {
  if (method != "OPTIONS") return false;
  PreflightScan scan;
  for (const auto& [name, value] : fields) scan.Add(name, value);
  return scan.IsPreflight(method);
}

// Whether browsers, and not pages, write this field into preflights.
bool IsOfBrowsers(std::string_view name);

}  // namespace headgate::wire
