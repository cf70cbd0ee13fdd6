// No bytes pass as a token except a token that the owner of the key signed. Any bytes are read or
// refused as a key set.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/jwt/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::jwt;
  // RFC 7515, appendix A.3: nobody here knows the private key.
  static const Verifier strict({},
                               ReadKeySet(R"({"keys":[{"kty":"EC","crv":"P-256",)"
                                          R"("x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                                          R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})")
                                   ->keys);
  static const Verifier unverified({.unverified = true}, {});
  constexpr std::string_view kSigned =
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl"
      "fQ.";
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(data)), size);
  Verifier::Token token;
  if (strict.Verify(text, 0, token) == Refusal::kNone) HEADGATE_CHECK(text.starts_with(kSigned));
  (void)unverified.Verify(text, 1'800'000'000, token);
  (void)ReadKeySet(text);
  JsonMembers members;
  (void)members.Parse(text);
  return 0;
}
