#include "headgate/mapping/mapping_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/mapping/attribute_fields.h"
#include "headgate/mapping/host_pattern.h"
#include "headgate/mapping/possible.h"
#include "headgate/mapping/yaml_fields.h"
#include "headgate/rule/duration.h"

namespace headgate::mapping {
namespace {

using rule::DocumentNode;

constexpr std::array<std::string_view, 9> kFileWords = {"trusted_proxies",
                                                        "trusted_hops",
                                                        "forwarding_header",
                                                        "original_request",
                                                        "ipv6_prefix",
                                                        "idempotency_header",
                                                        "jwt",
                                                        "domain",
                                                        "mappings"};
constexpr std::array<std::string_view, 10> kMappingWords = {
    "name",   "path",   "method",       "host",   "domain",
    "exempt", "refuse", "require_rule", "status", "descriptors"};
constexpr std::array<std::string_view, 3> kDescriptorWords = {"entries", "cost", "optional"};
constexpr std::array<std::string_view, 6> kStatusWords = {"missing", "invalid", "no_rule",
                                                          "refused", "denied",  "unavailable"};
constexpr std::array<std::string_view, 10> kIssuerWords = {
    "name",      "header", "cookie",   "jwks_file", "secret_file",
    "algorithm", "issuer", "audience", "leeway",    "unverified"};

constexpr std::array<std::string_view, 4> kOriginals = {"none", "x-original", "x-forwarded",
                                                        "request-line"};
constexpr std::array<std::string_view, 3> kForwardingHeaders = {"x-forwarded-for", "forwarded",
                                                                "none"};
constexpr std::array<std::string_view, 3> kSecretAlgorithms = {"HS256", "HS384", "HS512"};

constexpr size_t kMappingsMax = 1000;

class Loader {
 public:
  Loader(const std::string& name, ReadText read, Asker asker)
      : problems_(name), read_(read), asker_(asker) {}

  LoadedMappings Load(std::string_view text) {
    const rule::Document::Parsed parsed = rule::Document::Parse(text);
    if (parsed.error) {
      problems_.Add(parsed.error->mark, parsed.error->message,
                    "the file is not valid YAML; check this line and the lines above it");
    } else if (const DocumentNode* root = parsed.document->root();
               root == nullptr || root->kind != rule::NodeKind::kMapping) {
      problems_.Add({}, "the file has no mappings", "begin with \"mappings:\"");
    } else {
      LoadFile(*root);
    }
    LoadedMappings loaded{.set = nullptr, .problems = {}, .files = std::move(files_)};
    if (problems_.empty()) {
      loaded.set = std::make_shared<const MappingSet>(std::move(set_));
    } else {
      loaded.problems = std::move(problems_).Take();
    }
    return loaded;
  }

 private:
  void LoadFile(const DocumentNode& root) {
    YamlFields fields(root, "the file", kFileWords, problems_);
    LoadTrust(fields);
    if (const auto choice = fields.Choice("original_request", kOriginals))
      set_.original_request = static_cast<OriginalRequest>(*choice);
    if (asker_ == Asker::kOwnProxy) set_.original_request = OriginalRequest::kLine;
    if (const auto bits = fields.Number(
            "ipv6_prefix", 1, 128,
            "64 stands for a customer's network, the default; 128 for each address by itself"))
      set_.attributes.ipv6_prefix_bits = static_cast<uint8_t>(*bits);
    if (auto header = fields.Name("idempotency_header", CheckHeaderName))
      set_.idempotency_header = *std::move(header);
    for (const DocumentNode* node : fields.Mappings("jwt")) LoadIssuer(*node);
    domain_ = fields.Text("domain").value_or(std::string(rule::kDefaultDomain));
    const auto mappings = fields.Mappings("mappings");
    if (!fields.has("mappings")) {
      problems_.Add(fields.mark(), "the file has no mappings",
                    "add \"mappings:\" and under it a list");
    }
    if (mappings.size() > kMappingsMax)
      return fields.Report("mappings", fmt::format("there are more than {} mappings", kMappingsMax),
                           "one mapping may have several paths: path: [/a, /b/*]");
    for (const DocumentNode* node : mappings) LoadMapping(*node);
    CheckOrder();
  }

  // Conditions with problems say nothing about which requests they fit.
  void CheckOrder() {
    if (!problems_.empty()) return;
    const std::span<const Mapping> all = set_.mappings;
    for (size_t i = 0; i < all.size(); ++i) Report(CheckReached(all[i], all.first(i)), marks_[i]);
  }

  void LoadTrust(YamlFields& fields) {
    ClientAddressOptions& client = set_.attributes.client_address;
    std::vector<base::IpNetwork> networks;
    for (const PlacedText& proxy : fields.Texts("trusted_proxies")) {
      if (proxy.text == "unix") {
        set_.unix_peers = true;
      } else if (const auto network = ReadNetwork(proxy)) {
        networks.push_back(*network);
      }
    }
    if (!fields.has("trusted_proxies") && asker_ == Asker::kOtherProxy) {
      problems_.Add(fields.mark(), "trusted_proxies is missing: nobody would be answered",
                    "list the proxies that ask: trusted_proxies: [127.0.0.1, 10.0.0.0/8]; unix "
                    "stands for Unix sockets");
    }
    client.trusted_proxies = base::IpNetworkSet(std::move(networks));
    client.trusted_hops = static_cast<uint32_t>(
        fields
            .Number("trusted_hops", 1, 32,
                    "the number of proxies in front of Headgate; without it, the client is the "
                    "first address from the right that is not in trusted_proxies")
            .value_or(0));
    if (const auto choice = fields.Choice("forwarding_header", kForwardingHeaders))
      client.header = static_cast<ForwardingHeader>(*choice);
  }

  // The beginning of a message about a line of the list file that was just read. `line` is 0 if it
  // is not about one.
  std::string PlaceOf(size_t line) const {
    return line == 0 ? "" : fmt::format("line {} of '{}': ", line, files_.back());
  }

  void Report(std::optional<Impossible> impossible, rule::Mark mark, size_t line = 0) {
    if (impossible)
      problems_.Add(mark, PlaceOf(line) + impossible->message, std::move(impossible->hint));
  }

  std::optional<base::IpNetwork> ReadNetwork(const PlacedText& text, size_t line = 0) {
    const auto network = base::ParseIpNetwork(text.text);
    if (!network) {
      problems_.Add(text.mark,
                    fmt::format("{}'{}' is not a network", PlaceOf(line), rule::Shown(text.text)),
                    "a network is written 10.0.0.0/8 or 2001:db8::/32, with no bits set behind the "
                    "prefix; an address alone stands for itself");
    }
    return network;
  }

  // The text of a file that the mappings name; absent if it cannot be read, which is reported.
  std::optional<std::string> ReadFileOf(YamlFields& fields, std::string_view word) {
    const auto file = fields.Text(word);
    if (!file) return std::nullopt;
    files_.push_back(*file);
    auto text = read_(*file);
    if (text.ok()) return *std::move(text);
    fields.Report(word, std::string(text.status().message()),
                  "a relative path begins at the folder of this file; check that Headgate may read "
                  "the file");
    return std::nullopt;
  }

  void LoadIssuer(const DocumentNode& node) {
    YamlFields fields(node, "an item of jwt", kIssuerWords, problems_);
    TokenIssuer issuer{.name = fields.Text("name").value_or("")};
    if (!issuer.name.empty() &&
        std::any_of(set_.issuers.begin(), set_.issuers.end(),
                    [&](const TokenIssuer& other) { return other.name == issuer.name; })) {
      fields.Report("name", fmt::format("two items of jwt have the name '{}'", issuer.name),
                    "give each its own: claims name it with jwt: NAME");
    }
    if (auto header = fields.Name("header", CheckHeaderName)) issuer.header = *std::move(header);
    issuer.cookie = fields.Name("cookie", CheckCookieName).value_or("");
    if (fields.has("header") && fields.has("cookie"))
      fields.Report("cookie", "the token is in a header or in a cookie, not in both",
                    "remove header or cookie; a second item of jwt may name the other");
    jwt::VerifierOptions options{.issuer = fields.Text("issuer").value_or("")};
    for (PlacedText& audience : fields.Texts("audience"))
      options.audiences.push_back(std::move(audience.text));
    if (const auto leeway = fields.Text("leeway")) {
      const auto duration = rule::ParseDuration(*leeway);
      if (!duration.ok() || *duration > std::chrono::minutes(1)) {
        fields.Report("leeway", "leeway is not a duration of at most 1m",
                      "leeway: 30s is the default; 0s allows no difference of clocks");
      } else {
        options.leeway = *duration;
      }
    }
    options.unverified = fields.Truth("unverified", false);
    std::vector<jwt::Key> keys = LoadKeys(fields, options.unverified);
    issuer.verifier = std::make_shared<const jwt::Verifier>(std::move(options), std::move(keys));
    set_.issuers.push_back(std::move(issuer));
  }

  std::vector<jwt::Key> LoadKeys(YamlFields& fields, bool unverified) {
    const bool has_set = fields.has("jwks_file");
    const bool has_secret = fields.has("secret_file");
    if (has_set + has_secret != (unverified ? 0 : 1)) {
      problems_.Add(fields.mark(),
                    unverified ? "unverified tokens need no key"
                               : "tokens need either jwks_file or secret_file",
                    "unverified: true reads tokens that another server has verified");
      return {};
    }
    if (has_set) {
      const auto text = ReadFileOf(fields, "jwks_file");
      if (!text) return {};
      auto keys = jwt::ReadKeySet(*text);
      if (keys.ok()) return *std::move(keys);
      fields.Report("jwks_file", std::string(keys.status().message()),
                    "the file holds {\"keys\": […]}, as the issuer publishes it at its jwks_uri");
    } else if (has_secret) {
      const size_t algorithm = fields.Choice("algorithm", kSecretAlgorithms).value_or(0);
      auto text = ReadFileOf(fields, "secret_file");
      if (!text) return {};
      while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
      auto key = jwt::SecretKey(*std::move(text), static_cast<jwt::Algorithm>(algorithm));
      if (key.ok()) return {*std::move(key)};
      fields.Report("secret_file", std::string(key.status().message()),
                    "take the secret with which the issuer signs; `openssl rand -hex 32` makes one "
                    "that is long enough for HS256, HS384 and HS512");
    }
    return {};
  }

  void LoadMapping(const DocumentNode& node) {
    YamlFields fields(node, "a mapping", kMappingWords, problems_);
    Mapping mapping{
        .name = fields.Text("name").value_or(fmt::format("mappings[{}]", set_.mappings.size())),
        .domain = fields.Text("domain").value_or(domain_)};
    for (const PlacedText& path : fields.Texts("path")) {
      if (auto pattern = PathPattern::Parse(path.text)) {
        mapping.paths.push_back(*std::move(pattern));
      } else {
        problems_.Add(path.mark, fmt::format("'{}' matches no path", rule::Shown(path.text)),
                      "a path is written as it is normalized, without query: /login, /api/*, "
                      "/users/*/posts or *");
      }
    }
    for (PlacedText& method : fields.Texts("method")) {
      Report(CheckMethod(method.text), method.mark);
      mapping.methods.push_back(std::move(method.text));
    }
    for (const PlacedText& host : fields.Texts("host")) {
      Report(CheckHost(host.text), host.mark);
      mapping.hosts.push_back(ParseHostPattern(host.text).value_or(""));
    }
    CheckOriginal(fields);
    mapping.require_rule = fields.Truth("require_rule", false);
    if (const DocumentNode* const statuses = fields.Mapping("status"))
      LoadStatuses(*statuses, mapping.statuses);
    for (const DocumentNode* list : fields.Mappings("exempt"))
      mapping.exempt.push_back(LoadList(*list));
    for (const DocumentNode* list : fields.Mappings("refuse"))
      mapping.refuse.push_back(LoadList(*list));
    for (const DocumentNode* descriptor : fields.Mappings("descriptors"))
      mapping.descriptors.push_back(LoadDescriptor(*descriptor));
    if (mapping.descriptors.size() > rule::kDescriptorsMax) {
      fields.Report("descriptors",
                    fmt::format("a request has at most {} descriptors", rule::kDescriptorsMax),
                    "remove some, or choose between mappings by path, method and host");
    }
    marks_.push_back(fields.mark());
    set_.mappings.push_back(std::move(mapping));
  }

  // Conditions on the original request need a proxy that describes it.
  void CheckOriginal(const YamlFields& fields) {
    if (set_.original_request != OriginalRequest::kNone) return;
    if (!fields.has("path") && !fields.has("host") && !fields.has("method")) return;
    problems_.Add(fields.mark(), "conditions on path, method and host need original_request",
                  std::string(kOriginalRequestHint));
  }

  void LoadStatuses(const DocumentNode& node, Statuses& statuses) {
    YamlFields fields(node, "status", kStatusWords, problems_);
    for (const auto& [word, status] :
         {std::pair<std::string_view, int&>("missing", statuses.missing),
          {"invalid", statuses.invalid},
          {"no_rule", statuses.no_rule},
          {"refused", statuses.refused},
          {"denied", statuses.denied},
          {"unavailable", statuses.unavailable}}) {
      const auto value =
          fields.Number(word, 400, 599,
                        "a request that does not pass gets an error; which ones pass is not "
                        "decided here, so see exempt and optional");
      if (value) status = static_cast<int>(*value);
    }
  }

  AttributeList LoadList(const DocumentNode& node) {
    static const std::vector<std::string_view> words =
        WordsWithAttributes({"networks", "networks_file", "values", "values_file"});
    YamlFields fields(node, "a list", words, problems_);
    AttributeList list{.attribute = ReadAttribute(fields, AttributeContextOf())};
    const bool of_addresses = list.attribute.kind == AttributeKind::kClientAddress;
    const std::string_view inline_word = of_addresses ? "networks" : "values";
    const std::string_view file_word = of_addresses ? "networks_file" : "values_file";
    const std::string_view wrong_word = of_addresses ? "values" : "networks";
    const std::string_view wrong_file = of_addresses ? "values_file" : "networks_file";
    if (fields.has(wrong_word) || fields.has(wrong_file) ||
        (!fields.has(inline_word) && !fields.has(file_word))) {
      problems_.Add(fields.mark(),
                    fmt::format("a list of {} has {} or {}", Describe(list.attribute), inline_word,
                                file_word),
                    of_addresses
                        ? "{client_address: true, networks: [10.0.0.0/8]}, or networks_file: PATH"
                        : "{header: User-Agent, values: [\"…\"]}, or values_file: PATH");
    }
    std::vector<base::IpNetwork> networks;
    const auto add = [&](PlacedText item, size_t line = 0) {
      if (!of_addresses) {
        Report(CheckListValue(list.attribute, item.text), item.mark, line);
        list.values.insert(ListValue(list.attribute, item.text));
      } else if (const auto network = ReadNetwork(item, line)) {
        networks.push_back(*network);
      }
    };
    for (PlacedText& item : fields.Texts(inline_word)) add(std::move(item));
    if (const auto file = ReadFileOf(fields, file_word)) {
      for (const ListLine& line : ListLines(*file)) {
        add({.text = std::string(line.text), .mark = fields.mark(file_word)}, line.number);
      }
    }
    list.networks = base::IpNetworkSet(std::move(networks));
    return list;
  }

  MappedDescriptor LoadDescriptor(const DocumentNode& node) {
    YamlFields fields(node, "a descriptor", kDescriptorWords, problems_);
    MappedDescriptor descriptor{.entries = {},
                                .cost = fields.Number("cost", 0, uint64_t{1} << 62,
                                                      "cost: 1 is the default; 0 takes nothing"),
                                .optional = fields.Truth("optional", false)};
    static const std::vector<std::string_view> words = WordsWithAttributes({"key"});
    for (const DocumentNode* entry : fields.Mappings("entries")) {
      YamlFields entry_fields(*entry, "an entry", words, problems_);
      const auto key = entry_fields.Text("key");
      if (!entry_fields.has("key"))
        problems_.Add(entry_fields.mark(), "an entry has no key",
                      "- {key: api_key, header: X-API-Key}");
      descriptor.entries.push_back(
          {.key = key.value_or(""),
           .attribute = ReadAttribute(entry_fields, AttributeContextOf())});
    }
    if (descriptor.entries.empty())
      problems_.Add(fields.mark(), "a descriptor has no entries",
                    "add \"entries:\" and under it a list");
    if (descriptor.entries.size() > rule::kEntriesMax) {
      fields.Report("entries",
                    fmt::format("a descriptor has at most {} entries", rule::kEntriesMax),
                    "split it into several descriptors");
    }
    return descriptor;
  }

  AttributeContext AttributeContextOf() const {
    return {.original_request = set_.original_request, .issuers = set_.issuers};
  }

  rule::ProblemList problems_;
  ReadText read_;
  const Asker asker_;
  std::string domain_;
  std::vector<std::string> files_;
  std::vector<rule::Mark> marks_;  // of the mappings
  MappingSet set_;
};

}  // namespace

LoadedMappings LoadMappings(const std::string& name, std::string_view text, ReadText read,
                            Asker asker) {
  return Loader(name, read, asker).Load(text);
}

std::shared_ptr<const MappingSet> MappingOfHeader(std::string_view header) {
  auto set = std::make_shared<MappingSet>();
  set->any_peer = true;
  Mapping mapping{.name = "auth_header", .domain = std::string(rule::kDefaultDomain)};
  mapping.require_rule = true;
  mapping.descriptors.push_back(
      {.entries = {{.key = "api_key",
                    .attribute = {.kind = AttributeKind::kHeader, .name = std::string(header)}}}});
  set->mappings.push_back(std::move(mapping));
  return set;
}

std::shared_ptr<const MappingSet> MappingOfClient(std::string_view header) {
  auto set = std::make_shared<MappingSet>();
  set->original_request = OriginalRequest::kLine;
  const bool by_address = header.empty();
  Mapping mapping{.name = "client", .domain = std::string(rule::kDefaultDomain)};
  mapping.descriptors.push_back(
      {.entries = {{.key = "client",
                    .attribute = {.kind = by_address ? AttributeKind::kClientAddress
                                                     : AttributeKind::kHeader,
                                  .name = std::string(header)}}},
       .optional = true});
  set->mappings.push_back(std::move(mapping));
  return set;
}

std::vector<ListLine> ListLines(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of a file from Windows
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<ListLine> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(kSpace);
    if (begin != line.npos)
      lines.push_back({number, line.substr(begin, line.find_last_not_of(kSpace) + 1 - begin)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace headgate::mapping
