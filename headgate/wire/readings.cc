#include "headgate/wire/readings.h"

#include "headgate/base/text.h"

namespace headgate::wire {
namespace {

using enum Part;
using enum Use;

constexpr Reading kReadings[] = {
    // Mapped by `path: true`.
    {kPath, "GET /login;x=1", "Tomcat, Jetty", "/login", "invalid"},
    {kPath, "GET /;/login", "Tomcat", "/login", "invalid"},
    {kPath, "GET /x/..;/login", "Tomcat", "/login", "invalid"},
    {kPath, "GET /x/%2e%2e;/login", "Tomcat", "/login", "invalid"},
    {kPath, "GET /login%3bx=1", "Tomcat, Jetty, JDK", "/login;x=1", "invalid"},
    {kPath, "GET //x/login", "PHP, Node, JDK", "/login", "invalid"},
    {kPath, "GET //user@x/login", "PHP, Node, JDK", "/login", "invalid"},
    {kPath, "GET ///x/login", "Node", "/login", "invalid"},
    {kPath, "GET /.//x/login", "Node", "//x/login", "invalid"},
    {kPath, "GET /a//login", "Rack, Python", "/a//login", "/a/login"},
    {kPath, "GET /a/../login", "Rack, Python, PHP, JDK", "/a/../login", "invalid"},
    {kPath, "GET /a/%2e/login", "Rack, Python, JDK", "/a/./login", "invalid"},
    {kPath, "GET /login/x/..", "Tomcat", "/login", "invalid"},
    {kPath, "GET /login/x/..", "Jetty, Node", "/login/", "invalid"},
    {kPath, "GET /a%2flogin", "Jetty, JDK, Rack, Node", "/a/login", "invalid",
     kRefusedInPathEscaped, "/"},
    {kPath, "GET /a%5clogin", "Jetty, JDK, Rack, Node", "/a\\login", "invalid",
     kRefusedInPathEscaped, "\\"},
    {kPath, "GET /a\\login", "Node", "/a/login", "invalid", kRefusedInPath, "\\"},
    {kPath, "GET /login%00", "JDK, Rack, Node", "/login\\x00", "invalid"},
    {kPath, "GET /login#x", "PHP, Jetty, JDK, Node", "/login", "invalid", kRefusedInPath, "#"},
    {kPath, "GET /lo%ff", "JDK, Rack", "/lo\\xef\\xbf\\xbd", "invalid"},
    {kPath, "GET /%c0%aelogin", "JDK", "/\\xef\\xbf\\xbd\\xef\\xbf\\xbdlogin", "invalid"},
    {kPath, "GET /%u006cogin", "Jetty", "/login", "invalid"},
    {kPath, "GET /(S(x))/login", "ASP.NET", "/login", "invalid"},
    {kPath, "GET /a%252flogin", "Tomcat, Jetty, JDK, Rack, Node, Python", "/a%2flogin",
     "/a%2flogin"},
    {kPath, "GET http://x/login", "Jetty, JDK, PHP, Rack, Node", "/login", "invalid"},
    {kPath, "GET /login/", "Tomcat, Jetty, JDK, PHP, Rack, Node, Python", "/login/", "/login/"},
    {kPath, "GET /login%20", "Tomcat, Jetty, JDK, Rack, Node, Python", "/login ", "/login "},
    {kPath, "GET /login.json", "Rails", "/login", "/login.json"},
    {kPath, "GET /index.php/login", "Symfony, Laravel, WordPress", "/login", "/index.php/login"},
    {kPath, "GET /LOGIN", "Express, ASP.NET", "/login", "/LOGIN"},

    // Mapped by `query: api_key`.
    {kQuery, "GET /?api_key=a;api_key=b", "Rack", "b", "invalid", kRefusedInQuery, ";"},
    {kQuery, "GET /?api_key=a&api_key=b", "PHP, Rack, Python", "b", "invalid"},
    {kQuery, "GET /?api_key=a&api_key=b", "Tomcat, Jetty, Node", "a", "invalid"},
    {kQuery, "GET /?api_key=a&%61pi_key=b", "PHP, Rack, Python", "b", "invalid"},
    {kQuery, "GET /?api_key=a&api.key=b", "PHP", "b", "invalid", kFoldedInName, "."},
    {kQuery, "GET /?api_key=a&api%20key=b", "PHP", "b", "invalid", kFoldedInName, " "},
    {kQuery, "GET /?api_key=a&api+key=b", "PHP", "b", "invalid"},
    {kQuery, "GET /?api_key=a&%20api_key=b", "PHP", "b", "invalid", kSkippedInName, " "},
    {kQuery, "GET /?api_key=a&api[key=b", "PHP", "b", "invalid", kFoldedInName, "["},
    {kQuery, "GET /?api_key=a&api_key[]=b", "PHP", "b", "invalid", kBeginsMember, "["},
    {kQuery, "GET /?api_key=a&api_key[x]=b", "PHP", "b", "invalid"},
    {kQuery, "GET /?api_key=a&[api_key]=b", "Rack", "b", "invalid", kSkippedInName, "[]"},
    {kQuery, "GET /?api_key=a&api_key]=b", "Rack", "b", "invalid", kBeginsMember, "]"},
    {kQuery, "GET /?api_key=a&api_key%00x=b", "PHP", "b", "invalid"},
    {kQuery, "GET /?api_key=a&API_KEY=b", "ASP.NET", "a,b", "invalid"},
    {kQuery, "GET /?api_key=a&%u0061pi_key=b", "ASP.NET", "a,b", "invalid"},
    {kQuery, "GET /?api.key=b", "PHP", "b", "b"},
    {kQuery, "GET /?api_key[]=b", "PHP, Rack", "b", "b"},
    {kQuery, "GET /??api_key=b", "PHP", "b", "b", kSkippedInName, "?"},
    {kQuery, "GET /?api_key=a+b", "Tomcat, Jetty, PHP, Rack, Node, Python", "a b", "a b"},
    {kQuery, "GET /?api_key=%zz", "PHP, Node, Python", "%zz", "invalid"},
    {kQuery, "GET /?api_key=%ff", "Tomcat, Node, Python", "\\xef\\xbf\\xbd", "invalid"},
    {kQuery, "GET /?ids[]=1&ids[]=2&api_key=a", "PHP, Rack, Node, Python", "a", "a"},

    // Mapped by `cookie: session_id`.
    {kCookie, "Cookie: session_id=a; session_id=b", "Python", "b", "invalid"},
    {kCookie, "Cookie: session_id=a; session_id=b", "Tomcat, Jetty, PHP, Rack", "a", "invalid"},
    {kCookie, "Cookie: session_id=a\nCookie: session_id=b", "Tomcat, Jetty", "a", "invalid"},
    {kCookie, "Cookie: session.id=b; session_id=a", "PHP", "b", "invalid"},
    {kCookie, "Cookie: session[id=b; session_id=a", "PHP", "b", "invalid"},
    {kCookie, "Cookie: %73ession_id=b; session_id=a", "PHP 7.3, Rack 2.1", "b", "invalid"},
    {kCookie, "Cookie: SESSION_ID=b; session_id=a", "ASP.NET", "b", "invalid"},
    {kCookie, "Cookie: session_id=a session_id=b", "Python", "b", "invalid", kRefusedInCookie, " "},
    {kCookie, "Cookie: session_id=a, session_id=b", "Python", "b", "invalid", kRefusedInCookie,
     ","},
    {kCookie, "Cookie: session_id=a; x=1 session_id=b", "Python", "b", "invalid"},
    {kCookie, "Cookie: x=\"; session_id=a; y=\"; session_id=b", "Python, Jetty", "b", "invalid"},
    {kCookie, "Cookie: x=\"; session_id=a; y=\"; session_id=b", "Tomcat, PHP, Rack", "a",
     "invalid"},
    {kCookie, "Cookie: session_id=\"a\\b\"", "Python", "ab", "invalid", kRefusedInCookie, "\\"},
    {kCookie, "Cookie: session_id\\xa0=a; session_id=b", "Express", "a", "invalid"},
    {kCookie, "Cookie: session_id=a\"b", "PHP, Rack", "a\"b", "invalid", kRefusedInCookie, "\""},
    {kCookie, "Cookie: session_id=a,b", "PHP, Rack, Python", "a,b", "invalid"},
    {kCookie, "Cookie: session_id=a,b", "Tomcat, Jetty", "-", "invalid"},
    {kCookie, "Cookie: session_id=a\\xa0", "Rack", "a\\xef\\xbf\\xbd", "invalid"},
    {kCookie, "Cookie: session_id=%zz%61", "PHP", "%zza", "invalid"},
    {kCookie, "Cookie: session_id[]=b", "PHP", "b", "b"},
    {kCookie, "Cookie: session_id=\"a\"", "Tomcat, Jetty, Python", "a", "a"},
    {kCookie, "Cookie: session_id=%61", "PHP, Rack", "a", "a"},
    {kCookie, "Cookie: session_id=a+b", "Tomcat, Jetty, PHP, Python", "a+b", "a+b"},
    {kCookie, "Cookie: session_id=a+b", "Rack", "a b", "a+b"},
    {kCookie, "Cookie: session_id=a%20b", "PHP, Rack", "a b", "a+b"},
    {kCookie, "Cookie: _ga=GA1.2.3.4; prefs={\"a\":[1,2]}; session_id=YQ==",
     "Tomcat, Jetty, PHP, Rack", "YQ==", "YQ=="},

    // Mapped by `header: X-API-Key`.
    {kHeader, "X-API-Key: a\nX-API-Key: b", "Tomcat, Jetty, JDK", "a", "invalid"},
    {kHeader, "X-API-Key: a\nX-API-Key: b", "PHP, Rack, Node", "a, b", "invalid"},
    {kHeader, "X-API-Key: a\nX_API_Key: b", "PHP", "b", "invalid"},
    {kHeader, "X_API_Key: b", "PHP, Rack", "b", "invalid"},
    {kHeader, "X.API.Key: b", "PHP", "b", "invalid"},
    {kHeader, "X-API-Key: a\\xa0", "Python", "a", "invalid"},
    {kHeader, "X-API-Key: a\\x85", "Python", "a", "invalid"},
    {kHeader, "X-API-Key:   a b  ", "Tomcat, Jetty, JDK, Rack, Node, Python", "a b", "a b"},

    // Mapped by `header: Authorization`.
    {kCredentials, "Authorization: bearer k1", "Rack, Node, Python", "k1", "Bearer k1"},
    {kCredentials, "Authorization: BEARER  k1", "Rack, Python", "k1", "Bearer k1"},
    {kCredentials, "Authorization: Bearer k1 x", "Node", "k1", "invalid"},
    {kCredentials, "Authorization: Bearer k1,x", "Rails", "k1", "invalid"},
    {kCredentials, "Authorization: Bearer x=k1", "Rails", "k1", "invalid"},
    {kCredentials, "Authorization: Token token=\"k1\"", "Rails", "k1", "Token k1"},
    {kCredentials, "Authorization: Basic azpw", "Rack, Python", "k:p", "Basic azpw"},
    {kCredentials, "Authorization: basic  azpw", "Rack, Python", "k:p", "Basic azpw"},
    {kCredentials, "Authorization: Basic azpwcQ", "Rack", "k:pq", "invalid"},
    {kCredentials, "Authorization: Basic azpwcR==", "Rack, Python", "k:pq", "invalid"},
    {kCredentials, "Authorization: Basic a.z.p.w", "Rack, Python", "k:p", "invalid"},

    // Mapped by `method: true`.
    {kMethod, "HEAD /login", "Tomcat, Jetty", "GET", "GET"},
    {kMethod, "POST /login\nX-HTTP-Method-Override: PUT", "Rack", "PUT", "POST"},
    {kMethod, "post /login", "-", "POST", "invalid"},

    // Mapped by `host: true`.
    {kHost, "Host: EXAMPLE.com:80", "Node", "example.com", "example.com"},
    {kHost, "Host: user@example.com", "Node", "example.com", "invalid"},
    {kHost, "Host: %65xample.com", "Node", "example.com", "invalid"},
    {kHost, "Host: 127.1", "Node", "127.0.0.1", "invalid"},
    {kHost, "Host: 0x7f.0.0.1", "Node", "127.0.0.1", "invalid"},
    {kHost, "Host: example.com.", "Node", "example.com.", "example.com"},

    // Mapped by `client_address: true`.
    {kAddress, "X-Forwarded-For: ::ffff:203.0.113.7", "Python", "203.0.113.7", "203.0.113.7"},
    {kAddress, "X-Forwarded-For: 64:ff9b::203.0.113.7", "NAT64", "203.0.113.7", "203.0.113.7"},
};

constexpr bool Refuses(Use use) {
  return use == kRefusedInPath || use == kRefusedInPathEscaped || use == kRefusedInCookie;
}

constexpr CharacterSet MakeSet(Use use) {
  CharacterSet set{};
  for (const Reading& reading : kReadings) {
    if (reading.use != use) continue;
    for (const char c : reading.characters) set[static_cast<unsigned char>(c)] = true;
  }
  for (size_t c = 0; c < set.size(); ++c)
    set[c] = set[c] || (Refuses(use) && base::IsControl(static_cast<char>(c)));
  return set;
}

template <Use... kUses>
constexpr std::array<CharacterSet, sizeof...(kUses)> MakeSets() {
  return {MakeSet(kUses)...};
}

constexpr std::array<std::string_view, 8> kPartNames = {
    "path", "query", "cookie", "header", "credentials", "method", "host", "address"};

}  // namespace

std::string_view Name(Part part) { return kPartNames[static_cast<size_t>(part)]; }

std::span<const Reading> Readings() { return kReadings; }

constinit const std::array<CharacterSet, 8> kCharacterSets =
    MakeSets<kNone, kRefusedInPath, kRefusedInPathEscaped, kRefusedInQuery, kRefusedInCookie,
             kSkippedInName, kFoldedInName, kBeginsMember>();

}  // namespace headgate::wire
