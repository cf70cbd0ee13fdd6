// One file because the parts of a mapping file refer to each other: a descriptor names issuers and
// lists of networks, and a condition needs the description of the original request.
#include "headgate/mapping/mapping_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/mapping/attribute_fields.h"
#include "headgate/mapping/browser_words.h"
#include "headgate/mapping/hints.h"
#include "headgate/mapping/host_pattern.h"
#include "headgate/mapping/possible.h"
#include "headgate/mapping/reading_warnings.h"
#include "headgate/mapping/yaml_fields.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/read/refusal_reader.h"

namespace headgate::mapping {
namespace {

using rule::read::DocumentNode;

constexpr std::array<std::string_view, 13> kFileWords = {
    "trusted_proxies", "trusted_hops", "forwarding_header",  "original_request",
    "path_parameters", "ipv6_prefix",  "idempotency_header", "preflights",
    "cors_origins",    "jwt",          "networks",           "domain",
    "mappings"};
constexpr std::array<std::string_view, 3> kNetworkWords = {"name", "networks", "networks_file"};
constexpr std::array<std::string_view, 12> kMappingWords = {
    "name",    "path",       "method",       "host",   "domain",
    "exempt",  "refuse",     "require_rule", "status", "rate_limit_fields",
    "refusal", "descriptors"};
constexpr std::array<std::string_view, 4> kDescriptorWords = {"entries", "cost", "optional",
                                                              "limit_from"};
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
// In the order of wire::PathParameters.
constexpr std::array<std::string_view, 3> kPathParameters = {"refuse", "strip", "keep"};

constexpr size_t kMappingsMax = 1000;

bool IsOfRules(const DocumentNode& root) {
  bool has_rules = false;
  bool has_mappings = false;
  for (size_t i = 0; i + 1 < root.children.size(); i += 2) {
    has_rules = has_rules || root.children[i]->text == "descriptors";
    has_mappings = has_mappings || root.children[i]->text == "mappings";
  }
  return has_rules && !has_mappings;
}

class Loader {
 public:
  Loader(const std::string& name, ReadText read, Asker asker)
      : problems_(name), warnings_(name), read_(read), asker_(asker) {}

  LoadedMappings Load(std::string_view text) {
    const rule::read::Document::Parsed parsed = rule::read::Document::Parse(text);
    if (parsed.error) {
      problems_.Add(parsed.error->mark, parsed.error->message, parsed.error->hint);
    } else if (const DocumentNode* root = parsed.document->root();
               root == nullptr || root->kind != rule::read::NodeKind::kMapping) {
      problems_.Add({}, "the file has no mappings", "begin with \"mappings:\"");
    } else if (IsOfRules(*root)) {
      problems_.Add(root->mark, "this is a file of rules, not of mappings",
                    "headgate serve --rules FILE --auth MAPPINGS; a file of mappings has the words "
                    "trusted_proxies and mappings");
    } else {
      LoadFile(*root);
    }
    LoadedMappings loaded{
        .set = nullptr, .problems = {}, .warnings = {}, .files = std::move(files_)};
    if (problems_.empty()) {
      SetHeaders(set_);
      WarnOfReadings(set_, marks_, warnings_);
      loaded.warnings = std::move(warnings_).Take();
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
    set_.attributes.may_join_fields =
        asker_ == Asker::kOtherProxy && set_.original_request == OriginalRequest::kLine;
    set_.attributes.asks_trusted = asker_ == Asker::kOtherProxy;
    if (asker_ == Asker::kOwnProxy) set_.original_request = OriginalRequest::kLine;
    if (const auto choice = fields.Choice("path_parameters", kPathParameters))
      set_.attributes.path_parameters = static_cast<wire::PathParameters>(*choice);
    if (const auto bits = fields.Number(
            "ipv6_prefix", 1, 128,
            "64 stands for a customer's network, the default; 128 for each address by itself"))
      set_.attributes.ipv6_prefix_bits = static_cast<uint8_t>(*bits);
    if (auto header = fields.Name("idempotency_header", CheckHeaderName))
      set_.idempotency_header = *std::move(header);
    ReadBrowserWords(fields, asker_, set_, problems_, warnings_);
    for (const DocumentNode* node : fields.Mappings("jwt")) LoadIssuer(*node);
    for (const DocumentNode* node : fields.Mappings("networks")) LoadNetworks(*node);
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
    set_.attributes.networks = networks_.TakeTables();
    CheckOrder();
    WarnOfUnmatched(fields);
  }

  // Attackers look for a spelling of a limited path that no mapping fits.
  void WarnOfUnmatched(const YamlFields& fields) {
    constexpr std::string_view kHint =
        "end the list with a mapping without path, method and host: it can count the rest by "
        "client_address";
    if (set_.mappings.empty() && fields.has("mappings")) {
      warnings_.Add(fields.mark("mappings"), "there are no mappings: every request passes",
                    std::string(kHint));
    } else if (!set_.mappings.empty() &&
               std::none_of(set_.mappings.begin(), set_.mappings.end(), FitsEveryRequest)) {
      warnings_.Add(marks_.back(),
                    "requests that fit no mapping pass and are not counted, such as /login.json "
                    "beside /login",
                    std::string(kHint));
    }
  }

  // If conditions have problems, it is unknown which requests they fit.
  void CheckOrder() {
    if (!problems_.empty()) return;
    const std::span<const Mapping> all = set_.mappings;
    for (size_t i = 0; i < all.size(); ++i) Report(CheckReached(all[i], all.first(i)), marks_[i]);
  }

  void LoadTrust(YamlFields& fields) {
    ClientAddressOptions& client = set_.attributes.client_address;
    std::vector<base::IpNetwork> networks;
    const bool trusts_nobody =
        asker_ == Asker::kOtherProxy &&
        (!fields.has("trusted_proxies") || fields.is_empty_list("trusted_proxies"));
    if (trusts_nobody) {
      problems_.Add(fields.mark("trusted_proxies"),
                    fmt::format("trusted_proxies is {}: nobody would be answered",
                                fields.has("trusted_proxies") ? "empty" : "missing"),
                    "list the proxies that ask: trusted_proxies: [127.0.0.1, 10.0.0.0/8]; unix "
                    "stands for Unix sockets");
    }
    for (const PlacedText& proxy :
         trusts_nobody ? std::vector<PlacedText>() : fields.Texts("trusted_proxies")) {
      if (proxy.text == "unix") {
        set_.unix_peers = true;
      } else if (const auto network = ReadNetwork(proxy)) {
        WarnOfWide(*network, proxy);
        networks.push_back(*network);
      }
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

  // A client in such a trusted network can choose the address that it is counted by.
  void WarnOfWide(const base::IpNetwork& network, const PlacedText& text) {
    constexpr uint8_t kBefore = 96;  // of an IPv4 network
    const bool is_ipv4 = network.prefix_bits >= kBefore;
    if (is_ipv4 ? network.prefix_bits >= kBefore + 8 : network.prefix_bits >= 16) return;
    warnings_.Add(
        text.mark,
        fmt::format("trusted_proxies has '{}': strangers are believed, and choose the "
                    "address by which they are counted",
                    text.text),
        "list the addresses of your own proxies, or the narrowest network that they are in");
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

  // Reports a path with a `;`. No request has such a path, unless `;` counts as an ordinary
  // character.
  void CheckParameter(const PlacedText& path, size_t line = 0) {
    if (path.text.find(';') == path.text.npos ||
        set_.attributes.path_parameters == wire::PathParameters::kKeep) {
      return;
    }
    problems_.Add(
        path.mark,
        fmt::format("{}no path has a ';', as in '{}'", PlaceOf(line), rule::Shown(path.text)),
        "path_parameters: keep, at the top of the file, makes it a character; only for "
        "applications that do not take it for the beginning of a parameter");
  }

  std::optional<base::IpNetwork> ReadNetwork(const PlacedText& text, size_t line = 0) {
    const auto network = base::ParseIpNetwork(text.text);
    if (!network) {
      const std::string hint = HintForNetwork(text.text);
      problems_.Add(
          text.mark, fmt::format("{}'{}' is not a network", PlaceOf(line), rule::Shown(text.text)),
          !hint.empty() ? hint
                        : "a network is written 10.0.0.0/8 or 2001:db8::/32, with no bits "
                          "set behind the prefix; an address alone stands for itself");
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
                    unverified ? "leave out jwks_file and secret_file; to verify tokens, leave out "
                                 "unverified"
                               : "save the key set that the issuer publishes at its jwks_uri: "
                                 "jwks_file: keys.json; or name the secret with which it signs: "
                                 "secret_file: PATH");
      return {};
    }
    if (has_set) {
      if (const auto name = fields.Text("jwks_file"); name && name->find("://") != name->npos) {
        fields.Report("jwks_file", "jwks_file is a file: keys are not fetched",
                      "save them, for instance with curl -o keys.json URL, again whenever the "
                      "issuer changes its keys; the file is followed");
        return {};
      }
      const auto text = ReadFileOf(fields, "jwks_file");
      if (!text) return {};
      auto set = jwt::ReadKeySet(*text);
      if (set.ok()) {
        for (std::string& warning : set->warnings) {
          warnings_.Add(
              fields.mark("jwks_file"), std::move(warning),
              "ask the issuer for a set in which each key is sound and has its own \"kid\"");
        }
        return std::move(set->keys);
      }
      fields.Report("jwks_file", std::string(set.status().message()),
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

  // A line of a file may have a name behind its network.
  void LoadNetworks(const DocumentNode& node) {
    YamlFields fields(node, "an item of networks", kNetworkWords, problems_);
    const std::string name = fields.Text("name").value_or("");
    if (!IsNetworkName(name) || !networks_.AddList(name)) {
      return fields.Report("name",
                           name.empty() ? std::string("a list of networks has no name")
                                        : fmt::format("'{}' cannot be the name of a list, or is "
                                                      "that of another one",
                                                      rule::Shown(name)),
                           "- {name: office, networks: [198.51.100.0/24]}");
    }
    if (!fields.has("networks") && !fields.has("networks_file")) {
      problems_.Add(fields.mark(), fmt::format("'{}' has no networks", rule::Shown(name)),
                    "- {name: office, networks: [198.51.100.0/24]}, or networks_file: PATH");
    }
    bool has_room = true;
    const auto add = [&](const PlacedText& network, std::string_view own, size_t line) {
      if (const auto read = ReadNetwork(network, line); read && has_room)
        has_room = networks_.Add(*read, own, {.mark = network.mark, .line = line});
    };
    for (const PlacedText& network : fields.Texts("networks")) add(network, "", 0);
    if (const auto file = ReadFileOf(fields, "networks_file")) {
      for (const ListLine& line : ListLines(*file)) {
        const size_t end = line.text.find_first_of(" \t");
        const size_t own = line.text.find_first_not_of(" \t", std::min(end, line.text.size()));
        add({.text = std::string(line.text.substr(0, end)), .mark = fields.mark("networks_file")},
            own == line.text.npos ? "" : line.text.substr(own), line.number);
      }
    }
    if (!has_room) {
      problems_.Add(fields.mark(),
                    fmt::format("there are more than {} networks", NetworkLists::kNetworksMax),
                    "join networks that are next to each other and have one name");
    }
  }

  // Reports a name that the tables of networks give to no client.
  void CheckNetworkName(const Attribute& attribute, const PlacedText& name, size_t line) {
    if (networks_.empty() || name.text == attribute.name ||
        networks_.HasName(attribute.table, name.text)) {
      return;
    }
    problems_.Add(
        name.mark,
        fmt::format("{}no network has the name '{}'", PlaceOf(line), rule::Shown(name.text)),
        "write the name of a list of networks, or one behind a network in its file");
  }

  void LoadMapping(const DocumentNode& node) {
    YamlFields fields(node, "a mapping", kMappingWords, problems_);
    Mapping mapping{
        .name = fields.Text("name").value_or(fmt::format("mappings[{}]", set_.mappings.size())),
        .domain = fields.Text("domain").value_or(domain_)};
    for (const PlacedText& path : fields.Texts("path")) {
      CheckParameter(path);
      Report(CheckPath(path.text), path.mark);
      if (auto pattern = PathPattern::Parse(path.text))
        mapping.paths.push_back(*std::move(pattern));
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
    if (const auto name = fields.Text("rate_limit_fields")) {
      mapping.rate_limit_fields = base::DialectByName(*name);
      if (!mapping.rate_limit_fields) {
        fields.Report("rate_limit_fields",
                      fmt::format("rate_limit_fields '{}' is not a form", rule::Shown(*name)),
                      "one of " + base::DialectNames());
      }
    }
    if (const DocumentNode* const refusal = fields.Mapping("refusal"))
      mapping.refusal = rule::read::ReadRefusal(*refusal, problems_);
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
        if (IsOfPath(list.attribute.kind)) CheckParameter(item, line);
        if (list.attribute.kind == AttributeKind::kNetwork)
          CheckNetworkName(list.attribute, item, line);
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
    if (const DocumentNode* const from = fields.Mapping("limit_from"))
      descriptor.limit_from = LoadLimitFrom(*from);
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

  // A client must not choose its own limit, so only signed claims, and headers that a trusted proxy
  // writes, count.
  std::optional<Attribute> LoadLimitFrom(const DocumentNode& node) {
    static const std::vector<std::string_view> words = WordsWithAttributes({});
    YamlFields fields(node, "limit_from", words, problems_);
    if (!fields.has("claim") && !fields.has("header")) {
      problems_.Add(fields.mark(), "limit_from needs a claim or a header",
                    "limit_from: {claim: plan}, or {header: X-Plan} that a trusted proxy sets");
      return std::nullopt;
    }
    Attribute attribute = ReadAttribute(fields, AttributeContextOf());
    if (attribute.kind == AttributeKind::kClaim && attribute.issuer < set_.issuers.size() &&
        set_.issuers[attribute.issuer].verifier->is_unverified()) {
      fields.Report("claim", "limit_from needs verified tokens, and these are unverified",
                    "give the issuer's jwks_file or secret_file; otherwise clients choose "
                    "their limit");
    }
    const bool trusts_somebody =
        set_.unix_peers || !set_.attributes.client_address.trusted_proxies.empty();
    if (attribute.kind == AttributeKind::kHeader && !trusts_somebody) {
      fields.Report("header", "limit_from believes only trusted proxies, and there are none",
                    "list the proxies that set the header: trusted_proxies: [10.0.0.7]");
    } else if (attribute.kind == AttributeKind::kHeader) {
      warnings_.Add(fields.mark("header"),
                    fmt::format("clients choose their limit if a trusted proxy passes on their {}",
                                attribute.name),
                    "make each trusted proxy set the header, or remove it");
    }
    return attribute;
  }

  AttributeContext AttributeContextOf() {
    return {
        .original_request = set_.original_request, .issuers = set_.issuers, .networks = &networks_};
  }

  rule::ProblemList problems_;
  rule::ProblemList warnings_;
  ReadText read_;
  const Asker asker_;
  std::string domain_;
  std::vector<std::string> files_;
  std::vector<rule::Mark> marks_;  // of the mappings
  NetworkLists networks_;
  MappingSet set_;
};

}  // namespace

LoadedMappings LoadMappings(const std::string& name, std::string_view text, ReadText read,
                            Asker asker) {
  return Loader(name, read, asker).Load(text);
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
