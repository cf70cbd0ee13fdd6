#include "headgate/proxy/forwarded_fields.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/http/token.h"
#include "headgate/wire/alike_names.h"

namespace headgate::proxy {
namespace {

using http::Fields;

constexpr std::array<std::string_view, 3> kNames = {"append", "replace", "off"};

// Joins the values of all fields of this name, in their order, into `out`.
void JoinValues(const Fields& fields, std::string_view name, std::string& out) {
  for (const auto [field, value] : fields) {
    if (!base::EqualsIgnoreCase(field, name) || value.empty()) continue;
    if (!out.empty()) out.append(", ");
    out.append(value);
  }
}

// Joins the client's list, if it is kept, and this hop's member, which may be empty, into one
// field.
void SetList(std::string_view name, bool keep, std::string_view member, Fields& fields,
             std::string& scratch) {
  scratch.clear();
  if (keep) JoinValues(fields, name, scratch);
  if (!member.empty()) {
    if (!scratch.empty()) scratch.append(", ");
    scratch.append(member);
  }
  fields.Remove(name);
  if (!scratch.empty()) fields.Add(name, scratch);
}

// Sets the field, unless an earlier proxy has set it and is believed.
void SetOnce(std::string_view name, bool keep, std::string_view value, Fields& fields) {
  if (keep && fields.CountOf(name) == 1) return;
  fields.Remove(name);
  if (!value.empty()) fields.Add(name, value);
}

std::string_view VersionOf(http::Version version) {
  switch (version) {
    case http::Version::kHttp10:
      return "1.0 ";
    case http::Version::kHttp11:
      return "1.1 ";
    case http::Version::kHttp2:
      return "2 ";
  }
  return "";
}

// The length of the first member of a list, up to a comma outside of comments and quoted strings
// (RFC 9110, 5.6.4 and 5.6.5). npos: a comment or a string has no end. Then its commas count as
// separators; otherwise a client could begin a comment that hides the names that proxies append.
size_t MemberEnd(std::string_view list) {
  size_t comments = 0;  // the depth of nested comments
  bool quoted = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '\\' && (quoted || comments > 0)) {
      ++i;
    } else if (quoted || (c == '"' && comments == 0)) {
      quoted = !quoted || c != '"';
    } else if (c == '(') {
      ++comments;
    } else if (c == ')' && comments > 0) {
      --comments;
    } else if (c == ',' && comments == 0) {
      return i;
    }
  }
  return quoted || comments > 0 ? std::string_view::npos : list.size();
}

// The parts of Via are appended one by one, so that a long name needs no memory of its own.
void SetVia(std::string_view name, http::RequestHead& head, std::string& scratch) {
  scratch.clear();
  JoinValues(head.fields, "Via", scratch);
  if (!scratch.empty()) scratch.append(", ");
  scratch.append(VersionOf(head.version)).append(name);
  head.fields.Remove("Via");
  head.fields.Add("Via", scratch);
}

// A token or a quoted string (RFC 7239, 4). An authority has no quotes and no backslashes.
void AppendParameter(std::string_view name, std::string_view value, std::string& out) {
  if (!out.empty()) out.push_back(';');
  out.append(name).push_back('=');
  const bool is_token = http::IsToken(value);
  if (!is_token) out.push_back('"');
  out.append(value);
  if (!is_token) out.push_back('"');
}

// RFC 7239, 6: an IPv6 address has brackets, and an address that is not known is "unknown".
std::string ForwardedElement(const net::Peer& peer, const http::RequestHead& head) {
  std::string node = peer.ip ? base::ToString(*peer.ip) : "unknown";
  if (peer.ip && !peer.ip->is_v4()) node = "[" + node + "]";
  std::string element;
  AppendParameter("for", node, element);
  if (!head.authority.empty()) AppendParameter("host", head.authority, element);
  AppendParameter("proto", head.scheme, element);
  return element;
}

void SetXForwarded(Forwarding forwarding, const net::Peer& peer, http::RequestHead& head,
                   std::string& scratch) {
  if (forwarding == Forwarding::kOff) return;
  const bool keep = forwarding == Forwarding::kAppend;
  for (const std::string_view name : {"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"})
    RemoveLookAlikes(name, head.fields);
  SetList("X-Forwarded-For", keep, peer.ip ? base::ToString(*peer.ip) : "", head.fields, scratch);
  SetOnce("X-Forwarded-Proto", keep, head.scheme, head.fields);
  SetOnce("X-Forwarded-Host", keep, head.authority, head.fields);
}

bool IsLookAlike(std::string_view a, std::string_view b) {
  return !base::EqualsIgnoreCase(a, b) && wire::IsAlikeField(a, b);
}

}  // namespace

void RemoveLookAlikes(std::string_view name, Fields& fields) {
  for (size_t i = 0; i < fields.size();) {
    if (IsLookAlike(fields[i].name, name)) {
      const std::string found(fields[i].name);
      fields.Remove(found);
    } else {
      ++i;
    }
  }
}

bool IsViaName(std::string_view name) {
  return name.size() <= kViaNameBytesMax && http::IsToken(name);
}

// RFC 9110, 7.6.3: members of a protocol, a name and perhaps a comment.
size_t CountInVia(const Fields& fields, std::string_view name) {
  size_t count = 0;
  for (const auto [field, value] : fields) {
    if (!base::EqualsIgnoreCase(field, "Via")) continue;
    bool all_ends = true;
    for (std::string_view rest = value; !rest.empty();) {
      size_t comma = all_ends ? MemberEnd(rest) : std::string_view::npos;
      if (comma == std::string_view::npos) {
        all_ends = false;
        comma = std::min(rest.find(','), rest.size());
      }
      std::string_view member = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      const auto take_word = [&] {
        member.remove_prefix(std::min(member.find_first_not_of(" \t"), member.size()));
        const std::string_view word = member.substr(0, member.find_first_of(" \t"));
        member.remove_prefix(word.size());
        return word;
      };
      take_word();
      if (base::EqualsIgnoreCase(take_word(), name)) ++count;
    }
  }
  return count;
}

std::string_view Name(Forwarding forwarding) { return kNames[static_cast<size_t>(forwarding)]; }

std::optional<Forwarding> ForwardingByName(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Forwarding>(found - kNames.begin());
}

bool TakeForward(http::RequestHead& head) {
  constexpr std::string_view kMaxForwards = "Max-Forwards";
  // A larger number would make no difference.
  constexpr uint64_t kMost = 1000;
  if (head.method != "OPTIONS" && head.method != "TRACE") return true;
  const auto text = head.fields.Find(kMaxForwards);
  const auto is_digit = [](char c) { return base::IsDigit(c); };
  if (!text || text->empty() || !std::all_of(text->begin(), text->end(), is_digit)) return true;
  uint64_t left = 0;
  for (const char c : *text) left = std::min(left * 10 + static_cast<uint64_t>(c - '0'), kMost);
  if (left == 0) return false;
  head.fields.Remove(kMaxForwards);
  head.fields.Add(kMaxForwards, std::to_string(left - 1));
  return true;
}

void SetForwardedFields(const ForwardedOptions& options, const net::Peer& peer,
                        http::RequestHead& head, std::string& scratch) {
  SetXForwarded(options.x_forwarded, peer, head, scratch);
  if (options.forwarded != Forwarding::kOff) {
    SetList("Forwarded", options.forwarded == Forwarding::kAppend, ForwardedElement(peer, head),
            head.fields, scratch);
  }
  if (!options.via.empty()) SetVia(options.via, head, scratch);
}

}  // namespace headgate::proxy
