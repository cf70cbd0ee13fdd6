#include "headgate/proxy/forwarded_fields.h"

#include <gtest/gtest.h>

#include "headgate/wire/forwarded.h"

namespace headgate::proxy {
namespace forwarded_fields_test {

struct Given {
  std::string_view name;
  std::string_view value;
};

net::Peer PeerAt(std::string_view address) {
  net::Peer peer;
  if (!address.empty()) peer.ip = base::ParseIpAddress(address);
  return peer;
}

// The fields after the change, as "name: value" lines in their order.
std::string Changed(const ForwardedOptions& options, std::string_view address,
                    std::initializer_list<Given> given,
                    http::Version version = http::Version::kHttp11) {
  http::RequestHead head{.version = version,
                         .method = "GET",
                         .target = "/",
                         .scheme = "https",
                         .authority = "example.com:8443"};
  for (const auto& [name, value] : given) head.fields.Add(name, value);
  std::string scratch;
  SetForwardedFields(options, PeerAt(address), head, scratch);
  std::string text;
  for (const auto [name, value] : head.fields)
    text.append(name).append(": ").append(value).append("\n");
  return text;
}

constexpr auto kOff = Forwarding::kOff;
constexpr auto kAppend = Forwarding::kAppend;
constexpr auto kReplace = Forwarding::kReplace;

// Many servers fold `_` to `-`, so these would count as the proxy's own.
TEST(ForwardedFields, LookAlikesOfWhatIsSetAreRemoved) {
  const std::initializer_list<Given> given = {{"X_Forwarded_For", "1.1.1.1"},
                                              {"x-forwarded_proto", "https"},
                                              {"X_FORWARDED-HOST", "evil"},
                                              {"X_Other", "stays"}};
  EXPECT_EQ(Changed({.x_forwarded = kAppend, .via = ""}, "192.0.2.7", given),
            "X_Other: stays\nX-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\n"
            "X-Forwarded-Host: example.com:8443\n");
  EXPECT_EQ(Changed({.x_forwarded = kOff, .via = ""}, "192.0.2.7", given),
            "X_Forwarded_For: 1.1.1.1\nx-forwarded_proto: https\nX_FORWARDED-HOST: evil\n"
            "X_Other: stays\n");
}

TEST(ForwardedFields, OnlyOtherSpellingsAreLookAlikes) {
  http::Fields fields;
  for (const std::string_view name :
       {"X-Client-Id", "x-client-id", "X_Client_Id", "X-Client_Id", "X_Client_Ids", "XClientId"})
    fields.Add(name, "v");
  RemoveLookAlikes("X-Client-Id", fields);
  EXPECT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields.CountOf("X_Client_Id") + fields.CountOf("X-Client_Id"), 0u);
  EXPECT_EQ(fields.CountOf("X-Client-Id"), 2u);
}

TEST(ForwardedFields, ViaIsCountedByName) {
  http::Fields fields;
  EXPECT_EQ(CountInVia(fields, "headgate"), 0u);
  fields.Add("Via", "1.1 headgate, 2 Headgate (a comment),HTTP/1.1\theadgate");
  fields.Add("via", "1.1 headgate:80, 1.1 other (headgate), headgate,, 1.0 headgate");
  EXPECT_EQ(CountInVia(fields, "headgate"), 4u);
}

// Commas of comments and of quoted strings separate nothing (RFC 9110, 5.6.4 and 5.6.5).
TEST(ForwardedFields, NamesInCommentsOfViaDoNotCount) {
  const auto count = [](std::string_view value) {
    http::Fields fields;
    fields.Add("Via", value);
    return CountInVia(fields, "headgate");
  };
  EXPECT_EQ(count("1.1 x (a, 1.1 headgate, 1.1 headgate), 1.1 headgate"), 1u);
  EXPECT_EQ(count("1.1 x (a (b, 1.1 headgate), 1.1 headgate), 1.1 headgate"), 1u) << "nested";
  EXPECT_EQ(count("1.1 x (\\), 1.1 headgate), 1.1 headgate"), 1u) << "a quoted parenthesis";
  EXPECT_EQ(count("1.1 x (\\(), 1.1 headgate"), 1u);
  EXPECT_EQ(count("1.1 \"x, 1.1 headgate\", 1.1 headgate"), 1u);
  EXPECT_EQ(count("1.1 \"x\\\", 1.1 headgate\", 1.1 headgate"), 1u);
  EXPECT_EQ(count("1.1 headgate (a \" b), 1.1 headgate"), 2u) << "no string begins in a comment";
}

// Otherwise a client could hide the names that the sidecars add behind a value that never ends.
TEST(ForwardedFields, CommentOfViaThatDoesNotEndHidesNothing) {
  http::Fields fields;
  fields.Add("Via", "1.1 x (a, 1.1 headgate, 1.1 headgate");
  EXPECT_EQ(CountInVia(fields, "headgate"), 2u);
  http::Fields quoted;
  quoted.Add("Via", "1.1 \"x, 1.1 headgate");
  EXPECT_EQ(CountInVia(quoted, "headgate"), 1u);
}

TEST(ForwardedFields, XForwardedIsAppended) {
  const ForwardedOptions options{.x_forwarded = kAppend, .forwarded = kOff, .via = ""};
  EXPECT_EQ(Changed(options, "192.0.2.7", {}),
            "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\n"
            "X-Forwarded-Host: example.com:8443\n");
  // All lines of a list become one, in their order (RFC 9110, 5.3). The first proxy knows best what
  // the client asked for.
  EXPECT_EQ(Changed(options, "2001:db8::1",
                    {{"x-forwarded-for", "198.51.100.1"},
                     {"a", "b"},
                     {"X-Forwarded-For", "198.51.100.2, 198.51.100.3"},
                     {"X-Forwarded-Proto", "http"},
                     {"X-Forwarded-Host", "first.example"}}),
            "a: b\nX-Forwarded-Proto: http\nX-Forwarded-Host: first.example\n"
            "X-Forwarded-For: 198.51.100.1, 198.51.100.2, 198.51.100.3, 2001:db8::1\n");
  // One proxy does not send two values, so the field is replaced.
  EXPECT_EQ(Changed(options, "192.0.2.7",
                    {{"X-Forwarded-Proto", "http"}, {"X-Forwarded-Proto", "https"}}),
            "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\n"
            "X-Forwarded-Host: example.com:8443\n");
}

TEST(ForwardedFields, XForwardedIsReplaced) {
  const ForwardedOptions options{.x_forwarded = kReplace, .forwarded = kOff, .via = ""};
  EXPECT_EQ(Changed(options, "192.0.2.7",
                    {{"X-Forwarded-For", "1.2.3.4"},
                     {"X-Forwarded-Proto", "http"},
                     {"X-Forwarded-Host", "evil"}}),
            "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\n"
            "X-Forwarded-Host: example.com:8443\n");
  // A Unix socket has no address.
  EXPECT_EQ(Changed(options, "", {{"X-Forwarded-For", "1.2.3.4"}}),
            "X-Forwarded-Proto: https\nX-Forwarded-Host: example.com:8443\n");
}

TEST(ForwardedFields, OffLeavesEverything) {
  const ForwardedOptions options{.x_forwarded = kOff, .forwarded = kOff, .via = ""};
  EXPECT_EQ(Changed(options, "192.0.2.7",
                    {{"X-Forwarded-For", "1.2.3.4"}, {"Forwarded", "for=x"}, {"Via", "1.1 a"}}),
            "X-Forwarded-For: 1.2.3.4\nForwarded: for=x\nVia: 1.1 a\n");
}

// RFC 7239, 4 and 6: an IPv6 address and a port need quotes.
TEST(ForwardedFields, Forwarded) {
  const ForwardedOptions append{.x_forwarded = kOff, .forwarded = kAppend, .via = ""};
  EXPECT_EQ(Changed(append, "192.0.2.7", {{"Forwarded", "for=198.51.100.1"}}),
            "Forwarded: for=198.51.100.1, for=192.0.2.7;host=\"example.com:8443\";proto=https\n");
  EXPECT_EQ(Changed(append, "2001:db8::1", {}),
            "Forwarded: for=\"[2001:db8::1]\";host=\"example.com:8443\";proto=https\n");
  EXPECT_EQ(Changed(append, "", {}),
            "Forwarded: for=unknown;host=\"example.com:8443\";proto=https\n");
  const ForwardedOptions replace{.x_forwarded = kOff, .forwarded = kReplace, .via = ""};
  EXPECT_EQ(Changed(replace, "192.0.2.7", {{"Forwarded", "for=evil"}, {"forwarded", "for=x"}}),
            "Forwarded: for=192.0.2.7;host=\"example.com:8443\";proto=https\n");
}

TEST(ForwardedFields, ForwardedIsReadAsItWasMeant) {
  const ForwardedOptions options{.x_forwarded = kOff, .forwarded = kAppend, .via = ""};
  const std::string line = Changed(options, "2001:db8::1", {{"Forwarded", "for=198.51.100.1"}});
  wire::ForwardedChain chain;
  ASSERT_TRUE(chain.AddLine(wire::ForwardedChain::Syntax::kForwarded,
                            std::string_view(line).substr(11, line.size() - 12)));
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain.Address(0), base::ParseIpAddress("198.51.100.1"));
  EXPECT_EQ(chain.Address(1), base::ParseIpAddress("2001:db8::1"));
}

// RFC 9110, 7.6.3: the protocol in which the message was received.
TEST(ForwardedFields, Via) {
  const ForwardedOptions options{.x_forwarded = kOff, .forwarded = kOff, .via = "headgate"};
  EXPECT_EQ(Changed(options, "192.0.2.7", {}), "Via: 1.1 headgate\n");
  EXPECT_EQ(Changed(options, "192.0.2.7", {{"via", "1.0 fred"}}, http::Version::kHttp2),
            "Via: 1.0 fred, 2 headgate\n");
  EXPECT_EQ(Changed(options, "192.0.2.7", {}, http::Version::kHttp10), "Via: 1.0 headgate\n");
  const ForwardedOptions named{.x_forwarded = kOff, .forwarded = kOff, .via = "edge-of-eu-west-1"};
  EXPECT_EQ(Changed(named, "192.0.2.7", {{"Via", "1.0 a"}, {"Via", "1.1 b (c)"}}),
            "Via: 1.0 a, 1.1 b (c), 1.1 edge-of-eu-west-1\n");
}

// RFC 9110, 7.6.3: a pseudonym is a token. A port, a comment or a second member would be another
// name than the one that is looked for.
TEST(ForwardedFields, NamesInVia) {
  for (const std::string_view name : {"headgate", "a", "10.0.0.7", "eu_west-1.example", "!#$%&'*+"})
    EXPECT_TRUE(IsViaName(name)) << name;
  for (const std::string_view name :
       {"", "a b", "a,b", "a:80", "[::1]", "a(b)", "a\"", "a/b", "\xff", "a\r\nX: 1"})
    EXPECT_FALSE(IsViaName(name)) << name;
  EXPECT_TRUE(IsViaName(std::string(255, 'a')));
  EXPECT_FALSE(IsViaName(std::string(256, 'a')));
}

TEST(ForwardedFields, TraceContextIsPassedOn) {
  const std::string traced =
      Changed({}, "192.0.2.7",
              {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
               {"tracestate", "a=b"}});
  EXPECT_EQ(traced.find("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n"
                        "tracestate: a=b\n"),
            0u);
}

TEST(ForwardedFields, NamesOfTheSetting) {
  for (const Forwarding forwarding : {kAppend, kReplace, kOff})
    EXPECT_EQ(ForwardingByName(Name(forwarding)), forwarding);
  EXPECT_EQ(ForwardingByName("on"), std::nullopt);
}

}  // namespace forwarded_fields_test
}  // namespace headgate::proxy
