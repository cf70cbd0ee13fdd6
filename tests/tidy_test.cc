// The tree keeps its shape: which folder may include which, what must not be written and what to
// write instead, and no dead files. Each message names the place and what to do. One file because
// it is one list of rules.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_dir.h"
#include "tests/tidy/floors.h"
#include "tests/tidy/source_tree.h"

namespace headgate::tidy {
namespace tidy_test {

const std::vector<SourceFile>& Tree() {
  static const std::vector<SourceFile> tree = ReadTree(SourceDir());
  return tree;
}

// The C++ of the project.
std::vector<const SourceFile*> Code() {
  std::vector<const SourceFile*> code;
  for (const SourceFile& file : Tree()) {
    if (file.is_header() || file.is_source()) code.push_back(&file);
  }
  return code;
}

// ---- Floors

std::string FolderOfInclude(std::string_view include) {
  if (!include.starts_with("headgate/")) return {};
  include.remove_prefix(9);
  return std::string(include.substr(0, include.rfind('/')));
}

std::string Joined(const std::set<std::string, std::less<>>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "nothing" : text;
}

// The files linked into the product: the sources that are not companions, and every header that
// they include.
const std::set<std::string>& Product() {
  static const std::set<std::string> product = [] {
    std::map<std::string, const SourceFile*> by_path;
    std::vector<std::string> open;
    for (const SourceFile* file : Code()) {
      by_path[file->path] = file;
      if (file->is_source() && !file->is_companion() && !file->folder().empty())
        open.push_back(file->path);
    }
    std::set<std::string> reached(open.begin(), open.end());
    while (!open.empty()) {
      const std::string path = open.back();
      open.pop_back();
      if (!by_path.contains(path)) continue;
      for (const auto& include : by_path[path]->Includes()) {
        if (include.quoted && reached.insert(include.path).second) open.push_back(include.path);
      }
    }
    return reached;
  }();
  return product;
}

// The words that follow a keyword in a folder's headgate_library(…).
std::set<std::string, std::less<>> CMakeWords(const SourceFile& file, std::string_view keyword) {
  std::set<std::string, std::less<>> words;
  size_t begin = file.text.find("headgate_library(");
  if (begin == file.text.npos) return words;
  begin += std::string_view("headgate_library(").size();
  std::istringstream in(file.text.substr(begin, file.text.find(')', begin) - begin));
  bool taking = false;
  for (std::string word; in >> word;) {
    const bool is_keyword = word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == word.npos;
    if (is_keyword) {
      taking = word == keyword;
    } else if (taking) {
      words.insert(word);
    }
  }
  return words;
}

const SourceFile* CMakeOf(std::string_view folder) {
  for (const SourceFile& file : Tree()) {
    if (file.name() == "CMakeLists.txt" && file.folder() == folder) return &file;
  }
  return nullptr;
}

bool InApp(const SourceFile& file) { return file.folder().starts_with("app"); }

// HTTP, files and logins use loops, descriptors and peers; rule sources and stores are opened by
// one folder each.
bool StandsOnItsOwnFloor(std::string_view folder, std::string_view lower) {
  return ((folder == "http" || folder == "files" || folder == "access" ||
           folder.starts_with("client/")) &&
          lower == "net") ||
         (folder == "http/routing" && lower == "access") ||
         // The parts of the program.
         (folder.starts_with("app") && lower.starts_with("app/")) ||
         // The versions of HTTP.
         (folder.starts_with("http/") && (lower == "http" || lower == "net")) ||
         (folder == "watch" && lower.starts_with("watch/")) ||
         // The readers and the editor of rule files.
         (folder.starts_with("rule/") && (lower == "rule" || lower == "rule/read")) ||
         // Decisions with the buckets that all instances share.
         (folder == "limiter/shared" && (lower == "limiter" || lower == "limiter/lease")) ||
         // Rules, and files with certificates and mappings, are followed.
         (folder == "follow" && (lower == "gate" || lower == "watch" || lower == "watch/file")) ||
         (folder == "store/open" && lower.starts_with("store/")) ||
         (folder == "shared_store" && (lower == "store/open" || lower == "store/cas")) ||
         // Adapters to services that can only compare and set.
         ((folder.starts_with("store/") || folder == "share/fleet") && lower == "store/cas") ||
         // The upstreams of a running proxy follow their files, and are handed over.
         (folder == "proxy/upstream" &&
          (lower == "proxy" || lower == "follow" || lower == "handover")) ||
         // Fronts and the sidecar describe a decision in the same fields, and judge requests alike.
         ((folder.starts_with("front/") || folder == "proxy" || folder == "gate") &&
          (lower == "answer" || lower == "gate"));
}

TEST(Floors, EveryFolderHasOne) {
  std::set<std::string> folders;
  for (const SourceFile* file : Code()) {
    if (!file->folder().empty()) folders.insert(std::string(file->folder()));
  }
  for (const std::string& folder : folders) {
    EXPECT_TRUE(Floors().contains(folder))
        << "headgate/" << folder << " has no row in the floor table of this test";
  }
  for (const auto& [folder, floor] : Floors()) {
    EXPECT_TRUE(folders.contains(folder)) << "there is no folder headgate/" << folder;
    for (const std::string& lower : floor.may_include) {
      EXPECT_TRUE(folder == "store/open" || lower == "store/open" || lower == "store/cas" ||
                  !lower.starts_with("store/"))
          << folder << " may include " << lower << "; only store/open knows the stores";
      if (StandsOnItsOwnFloor(folder, lower)) continue;
      EXPECT_LT(Floors().at(lower).floor, floor.floor)
          << folder << " -> " << lower << " does not go down";
    }
  }
}

TEST(Floors, IncludesGoDown) {
  for (const SourceFile* file : Code()) {
    const auto floor = Floors().find(file->folder());
    if (floor == Floors().end() || !Product().contains(file->path)) continue;
    for (const auto& include : file->Includes()) {
      const std::string folder = FolderOfInclude(include.path);
      if (folder.empty() || folder == file->folder()) continue;
      EXPECT_TRUE(floor->second.may_include.contains(folder))
          << file->path << ":" << include.line << " includes " << include.path << ", but "
          << file->folder() << " may include " << Joined(floor->second.may_include)
          << "; move the idea that both need down, or have app hand it in through an interface";
      const auto part = Parts().find({std::string(file->folder()), folder});
      EXPECT_TRUE(part == Parts().end() || part->second.contains(include.path))
          << file->path << ":" << include.line << " includes " << include.path
          << ", which is not the part of " << folder << " that " << file->folder() << " may see";
    }
  }
}

TEST(Floors, UsesInCMakeIsTheFloorTable) {
  for (const auto& [folder, floor] : Floors()) {
    const SourceFile* cmake = CMakeOf(folder);
    ASSERT_NE(cmake, nullptr) << "headgate/" << folder
                              << " has no CMakeLists.txt; four lines as in headgate/base";
    EXPECT_TRUE(folder == "testing" ||
                cmake->text.starts_with(fmt::format("# Floor {}: ", floor.floor)))
        << cmake->path << " should begin with `# Floor " << floor.floor
        << ": ` and what lives there";
    const auto uses = CMakeWords(*cmake, "USES");
    for (const std::string& used : uses) {
      EXPECT_TRUE(floor.may_include.contains(used))
          << cmake->path << " USES " << used << ", but " << folder << " may include "
          << Joined(floor.may_include);
    }
    auto test_uses = CMakeWords(*cmake, "TEST_USES");
    test_uses.insert({"testing", folder});
    for (const SourceFile* file : Code()) {
      if (file->folder() != folder) continue;
      const bool product = Product().contains(file->path);
      for (const auto& include : file->Includes()) {
        const std::string included = FolderOfInclude(include.path);
        if (included.empty() || included == folder) continue;
        EXPECT_TRUE(uses.contains(included) || (!product && test_uses.contains(included)))
            << file->path << ":" << include.line << " includes " << include.path << ", but "
            << cmake->path << " says neither USES " << included
            << (product ? "" : " nor TEST_USES " + included);
      }
    }
  }
}

TEST(Floors, AreAsTheDocumentsSay) {
  const auto document = std::find_if(Tree().begin(), Tree().end(), [](const SourceFile& file) {
    return file.path == "docs/internals/README.md";
  });
  ASSERT_NE(document, Tree().end());
  std::map<std::string, std::string> said;
  for (const SourceLine& line : Lines(document->text)) {
    const size_t end = line.text.find(" | `");
    // A row of the floors begins with a number or a dash.
    if (!line.text.starts_with("| ") || end == line.text.npos ||
        end > std::string_view("| –").size())
      continue;
    const std::string_view folders =
        line.text.substr(end + 3, line.text.find(" | ", end + 3) - end - 3);
    for (size_t open = folders.find('`'); open != folders.npos;) {
      const size_t close = folders.find('`', open + 1);
      said[std::string(folders.substr(open + 1, close - open - 1))] = line.text.substr(2, end - 2);
      open = folders.find('`', close + 1);
    }
  }
  for (const auto& [folder, floor] : Floors()) {
    EXPECT_EQ(said[folder], folder == "testing" ? "–" : fmt::format("{}", floor.floor))
        << "the table of docs/internals/README.md, folder " << folder;
  }
  EXPECT_EQ(said.size(), Floors().size())
      << "docs/internals/README.md names a folder that is not there";
}

// net has its own event loop (docs/decisions/0022-an-event-loop-without-asio.md).
TEST(Floors, NobodyNamesAsio) {
  for (const SourceFile* file : Code()) {
    if (file->folder().empty()) continue;
    for (const auto& include : file->Includes()) {
      EXPECT_FALSE(include.path.starts_with("boost/asio"))
          << file->path << ":" << include.line << " names asio";
    }
    EXPECT_FALSE(HasWord(file->code, "asio")) << file->path << " names asio";
  }
}

TEST(Floors, IncludesSayTheWholePath) {
  for (const SourceFile* file : Code()) {
    if (file->folder().empty()) continue;
    for (const auto& include : file->Includes()) {
      if (!include.quoted) continue;
      const auto beside = SourceDir() / file->path;
      EXPECT_FALSE(std::filesystem::exists(beside.parent_path() / include.path))
          << file->path << ":" << include.line << ": write #include \"headgate/" << file->folder()
          << "/" << include.path << "\"";
    }
  }
}

TEST(Floors, NamespaceIsTheFolder) {
  for (const SourceFile* file : Code()) {
    if (file->folder().empty()) continue;
    std::string expected = "headgate::" + std::string(file->folder());
    // The library's headers are used by other programs.
    if (file->folder() == "library") expected = "headgate";
    // All folders of the program share one namespace.
    if (InApp(*file)) expected = "headgate::app";
    if (const size_t slash = expected.find('/'); slash != expected.npos)
      expected.replace(slash, 1, "::");
    for (const SourceLine& line : Lines(file->code)) {
      if (!line.text.starts_with("namespace headgate")) continue;
      const std::string_view name = line.text.substr(10, line.text.find_first_of(" {", 10) - 10);
      EXPECT_EQ(name, expected) << file->path << ":" << line.number
                                << ": the namespace is the folder";
    }
  }
}

// ---- Bans

struct Ban {
  std::vector<std::string_view> words;
  std::string_view instead;
  // The files that may contain the words; null: none.
  bool (*is_allowed)(const SourceFile& file);
};

bool InBase(const SourceFile& file) { return file.folder() == "base"; }
bool InTests(const SourceFile& file) { return file.is_companion(); }
bool OutsideDecisions(const SourceFile& file) {
  return (file.folder() != "algorithm" && file.folder() != "capacity" &&
          file.folder() != "store") ||
         file.is_companion();
}

const std::vector<Ban>& Bans() {
  static const std::vector<Ban> bans = {
      {{"steady_clock::now", "system_clock::now", "high_resolution_clock::now", "clock_gettime",
        "gettimeofday", "time(nullptr)", "time(NULL)", "time(0)"},
       "take `now` as the last argument; base/clock.h is where clocks are read",
       InBase},
      {{"sleep_for", "sleep_until", "usleep", "nanosleep", "sleep("},
       "step a ManualClock, or wait for what you wait for with a deadline",
       nullptr},
      {{"rand(", "srand(", "drand48", "random_shuffle"},
       "use a seeded generator that was handed in",
       nullptr},
      {{"random_device"},
       "use a seeded generator that was handed in; secrets are drawn in app",
       InApp},
      {{"uniform_int_distribution", "uniform_real_distribution", "normal_distribution"},
       "reduce the generator's bits yourself: distributions differ from library to library, and "
       "nothing replays",
       nullptr},
      {{"unordered_map", "unordered_set", "unordered_multimap"},
       "use absl::flat_hash_map, or base/hash.h's keyed hash where clients choose the keys: std's "
       "hash can be aimed at",
       nullptr},
      {{"std::regex", "<regex>"},
       "write the few lines of a parser: std::regex is slow and overflows the stack on long input",
       InTests},
      {{"float", "double"},
       "decisions are integers only: base/wide.h has the 128-bit intermediates",
       OutsideDecisions},
      {{"assert("}, "use HEADGATE_CHECK (always on) or HEADGATE_DCHECK (base/check.h)", nullptr},
      {{"using namespace std;"}, "name what you use", nullptr},
  };
  return bans;
}

// The place of the first banned word and what to write; empty if there is none.
std::string FirstBanned(const SourceFile& file) {
  for (const Ban& ban : Bans()) {
    if (ban.is_allowed != nullptr && ban.is_allowed(file)) continue;
    for (const SourceLine& line : Lines(file.code)) {
      for (const std::string_view word : ban.words) {
        if (HasWord(line.text, word))
          return fmt::format("{}:{}: `{}`: {}", file.path, line.number, word, ban.instead);
      }
    }
  }
  return "";
}

TEST(Bans, NothingIsWrittenThatHasABetterWord) {
  for (const SourceFile* file : Code()) EXPECT_EQ(FirstBanned(*file), "");
}

// A canary: a ban that finds nothing would go unnoticed.
TEST(Bans, EachIsFound) {
  for (const Ban& ban : Bans()) {
    for (const std::string_view word : ban.words) {
      const SourceFile file{.path = "headgate/store/x.cc",
                            .text = {},
                            .code = CodeOf(fmt::format("a;\n  x = {};\n", word))};
      EXPECT_THAT(FirstBanned(file),
                  ::testing::StartsWith(fmt::format("headgate/store/x.cc:2: `{}`: ", word)));
    }
  }
}

TEST(Bans, CommentsAndTextMaySayAnything) {
  const auto code = [](std::string_view text) {
    return SourceFile{.path = "headgate/store/x.cc", .text = {}, .code = CodeOf(text)};
  };
  EXPECT_EQ(FirstBanned(code(
                "// rand(\n/* sleep_for\n double */ int a = 1'000; char b = '\"'; // double\n")),
            "");
  EXPECT_EQ(
      FirstBanned(code("auto a = \"rand( \\\" double\"; auto b = R\"x(double\n)\" rand()x\";\n")),
      "");
  EXPECT_EQ(FirstBanned(code("int grand(int double_check);\n")), "") << "parts of longer names";
  EXPECT_NE(FirstBanned(code("char a = '\\''; double b;\n")), "");
  EXPECT_NE(FirstBanned(code("auto a = R\"(\\)\"; double b;\n")), "");
}

TEST(Bans, UnfinishedWorkIsAnIssueNotAComment) {
  for (const SourceFile& file : Tree()) {
    if (file.path == "tests/tidy_test.cc") continue;
    for (const SourceLine& line : Lines(file.text)) {
      for (const std::string_view word : {"TODO", "FIXME", "XXX", "HACK"}) {
        EXPECT_FALSE(HasWord(line.text, word))
            << file.path << ":" << line.number << ": finish it, or open an issue";
      }
    }
  }
}

// Every line of the JSON log already has fields with these names.
TEST(Bans, NoFieldOfTheLogIsNamedAsEveryLinesAre) {
  for (const SourceFile& file : Tree()) {
    if (!file.path.starts_with("headgate/") || !file.path.ends_with(".cc")) continue;
    for (const std::string_view field : {"{\"time\",", "{\"level\",", "{\"event\","}) {
      EXPECT_EQ(file.text.find(field), std::string::npos)
          << file.path << ": " << field << " log_line.h says why";
    }
  }
}

// A file that includes such a header takes seconds longer to compile.
TEST(Bans, NoHeavyLibraryInAHeader) {
  for (const SourceFile& file : Tree()) {
    if (!file.path.starts_with("headgate/") || !file.path.ends_with(".h")) continue;
    if (file.name().starts_with("test_")) continue;
    for (const std::string_view library :
         {"boost/", "spdlog/", "openssl/", "CLI/", "prometheus/"}) {
      EXPECT_EQ(file.text.find(fmt::format("#include <{}", library)), std::string::npos)
          << file.path << ": include <" << library
          << "…> in the source, and declare here what it needs";
    }
  }
}

// Each source that includes it takes seconds longer to compile, and its exceptions would have to be
// caught. Tests may: they check the product's JSON with another library.
TEST(Bans, NoNlohmannJsonInTheProduct) {
  for (const SourceFile& file : Tree()) {
    if (!file.path.starts_with("headgate/") || file.name().starts_with("test_")) continue;
    if (file.name().ends_with("_test.cc")) continue;
    EXPECT_EQ(file.text.find("#include <nlohmann/"), std::string::npos)
        << file.path << ": use wire::Json of headgate/wire/json.h";
  }
}

TEST(Bans, NoPathOfSomebodysMachine) {
  for (const SourceFile& file : Tree()) {
    if (file.path == "tests/tidy_test.cc") continue;
    for (const SourceLine& line : Lines(file.text)) {
      for (const std::string_view path : {"/home/", "/root/", "/Users/"}) {
        EXPECT_EQ(line.text.find(path), line.text.npos)
            << file.path << ":" << line.number
            << ": a path of one machine; make it relative, or an argument";
      }
    }
  }
}

// ---- Files

TEST(Files, FoldersAreNamedForAnIdea) {
  const std::set<std::string> banned = {"util",    "utils",   "common", "helper", "helpers", "misc",
                                        "support", "include", "mocks",  "shared", "lib",     "src"};
  for (const SourceFile& file : Tree()) {
    for (const auto& part : std::filesystem::path(file.path).parent_path()) {
      // Its idea is what the instances share.
      if (file.folder() == "limiter/shared" && part == "shared") continue;
      EXPECT_FALSE(banned.contains(part.string()))
          << file.path << ": a folder `" << part.string() << "` collects everything; name the idea";
    }
  }
}

// The tests of a folder are compiled together, and many have helpers of the same name.
TEST(Files, TestsHaveANamespaceOfTheirOwn) {
  for (const SourceFile* file : Code()) {
    if (!file->path.ends_with("_test.cc") || file->path.starts_with("tests/compile_fail/"))
      continue;
    const std::string name(file->name().substr(0, file->name().size() - 3));
    EXPECT_NE(file->code.find("\nnamespace " + name + " {\n"), std::string::npos)
        << file->path << ": write the tests and their helpers in `namespace " << name << " {`";
    EXPECT_EQ(file->code.find("\nnamespace {\n"), std::string::npos)
        << file->path << ": an anonymous namespace is shared with the other tests of the folder; "
        << "move its content into `namespace " << name << "`";
  }
}

TEST(Files, EveryHeaderBeginsWithItsIdea) {
  for (const SourceFile* file : Code()) {
    if (!file->is_header()) continue;
    const std::vector<SourceLine> lines = Lines(file->text);
    size_t at = 0;
    while (at < lines.size() && lines[at].text.starts_with("//")) ++at;
    EXPECT_GT(at, 0u) << file->path
                      << ": begin with a comment: what idea lives here, and what it does not do";
    ASSERT_LT(at, lines.size()) << file->path;
    EXPECT_EQ(lines[at].text, "#pragma once")
        << file->path << ": `#pragma once` comes right behind the head comment";
  }
}

TEST(Files, LongOnesSayWhyTheyAreOne) {
  constexpr size_t kLinesMax = 600;
  for (const SourceFile* file : Code()) {
    const std::vector<SourceLine> lines = Lines(file->text);
    if (lines.size() <= kLinesMax) continue;
    std::string head;
    for (const SourceLine& line : lines) {
      if (!line.text.starts_with("//")) break;
      head += line.text;
    }
    EXPECT_NE(head.find("One file because"), head.npos)
        << file->path << " has " << lines.size()
        << " lines: look for the second idea in it, or let the head comment say `One file because "
           "…`";
  }
}

TEST(Files, NoHeaderIsDead) {
  for (const SourceFile* header : Code()) {
    if (!header->is_header()) continue;
    // The library is for other projects too. Above its floors, a header that only its own
    // companions include is unused.
    const auto floor = Floors().find(header->folder());
    const bool library =
        floor == Floors().end() || floor->second.floor <= 3 || header->folder() == "testing";
    const bool used = std::any_of(Tree().begin(), Tree().end(), [&](const SourceFile& file) {
      if (file.path == header->path) return false;
      if (!library && file.folder() == header->folder() && file.stem() == header->stem())
        return false;
      const auto includes = file.Includes();
      return std::any_of(includes.begin(), includes.end(), [&](const auto& include) {
        return include.path == header->path || (include.quoted && file.folder().empty() &&
                                                header->path.ends_with("/" + include.path));
      });
    });
    EXPECT_TRUE(used) << header->path << " is included by "
                      << (library ? "nobody" : "nobody but its own companions") << "; delete it";
  }
}

TEST(Files, EveryFuzzerHasACorpusAndEveryCorpusAFuzzer) {
  std::set<std::string> fuzzers;
  for (const SourceFile* file : Code()) {
    if (!file->path.ends_with("_fuzz.cc")) continue;
    std::string name = fmt::format("{}_{}_fuzz", file->folder(), file->stem());
    std::replace(name.begin(), name.end(), '/', '_');
    fuzzers.insert(name);
  }
  std::set<std::string> corpora;
  const std::filesystem::path root = SourceDir() / "tests/corpus";
  if (std::filesystem::exists(root)) {
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
      if (!std::filesystem::is_empty(entry.path())) corpora.insert(entry.path().filename());
    }
  }
  for (const std::string& name : fuzzers) {
    EXPECT_TRUE(corpora.contains(name))
        << name << " has no seeds: put small inputs into tests/corpus/" << name;
  }
  for (const std::string& name : corpora) {
    EXPECT_TRUE(fuzzers.contains(name))
        << "tests/corpus/" << name << " belongs to no fuzzer; delete it";
  }
}

TEST(Files, NothingWasDroppedHere) {
  for (const SourceFile& file : Tree()) {
    for (const std::string_view ending :
         {".profraw", ".rej", ".orig", ".rdb", ".gcda", ".swp", "~"}) {
      EXPECT_FALSE(file.path.ends_with(ending)) << file.path << ": delete it";
    }
  }
}

// ---- Documents

// Whether a document that a text names exists.
bool Exists(const SourceFile& file, const std::string& target) {
  namespace fs = std::filesystem;
  const fs::path root = SourceDir();
  return fs::exists(root / target) || fs::exists((root / file.path).parent_path() / target);
}

TEST(Documents, EveryDocumentThatIsNamedIsThere) {
  std::set<std::string> missing;  // report each once
  for (const SourceFile& file : Tree()) {
    if (file.path == "tests/tidy_test.cc") continue;
    for (const SourceLine& line : Lines(file.text)) {
      for (size_t at = line.text.find("docs/"); at != line.text.npos;
           at = line.text.find("docs/", at + 1)) {
        if (at > 0 &&
            (std::isalnum(static_cast<unsigned char>(line.text[at - 1])) != 0 ||
             std::string_view("./-_").find(line.text[at - 1]) != std::string_view::npos)) {
          continue;  // the end of an address or of another path
        }
        const size_t end =
            line.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-/.", at);
        std::string target(line.text.substr(at, std::min(end, line.text.size()) - at));
        while (target.ends_with('.')) target.pop_back();
        if (!target.ends_with(".md") || Exists(file, target) || !missing.insert(target).second)
          continue;
        ADD_FAILURE() << file.path << ":" << line.number << " names " << target << ": write it";
      }
    }
  }
}

// The part of a line of C++ that is a comment; all of other lines.
std::string_view ProseOf(const SourceFile& file, std::string_view line) {
  if (!file.is_header() && !file.is_source()) return line;
  const size_t comment = line.find("//");
  return comment == line.npos ? std::string_view() : line.substr(comment + 2);
}

// The names of sources in a text: "headgate/wire/origin.h", "origin.h".
std::vector<std::string> SourcesNamedIn(std::string_view text) {
  static constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/.";
  std::vector<std::string> names;
  for (size_t at = text.find_first_of(kLetters); at != text.npos;
       at = text.find_first_of(kLetters, at)) {
    const size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    std::string_view name = text.substr(at, end - at);
    at = end;
    while (name.ends_with('.')) name.remove_suffix(1);
    const bool is_source = name.ends_with(".h") || name.ends_with(".cc") || name.ends_with(".lua");
    // x_test.cc and _test.cc stand for any name.
    const std::string_view file = name.substr(name.rfind('/') + 1);
    const bool stands_for_any = file.find_first_of("_.") <= 1;
    if (is_source && !stands_for_any) names.emplace_back(name);
  }
  return names;
}

TEST(Documents, NamesOfSourcesAreFoundInTexts) {
  EXPECT_THAT(SourcesNamedIn("In `app/fronts.cc`, [code](../a/wide.lua) and (origin.h). x_test.cc"),
              ::testing::ElementsAre("app/fronts.cc", "../a/wide.lua", "origin.h"));
}

// A path may be shortened at the front. Decisions tell of their time.
TEST(Documents, EverySourceThatIsNamedIsThere) {
  std::set<std::string, std::less<>> known{"absl/container/flat_hash_map.h",
                                           "absl/status/statusor.h", "fmt/format.h"};
  for (const SourceFile& file : Tree()) {
    for (size_t at = 0; at != file.path.npos; at = file.path.find('/', at + 1))
      known.insert(file.path.substr(at == 0 ? 0 : at + 1));
  }
  for (const SourceFile& file : Tree()) {
    const bool is_read = file.is_header() || file.is_source() || file.path.ends_with(".md");
    if (!is_read || file.path.starts_with("docs/decisions/")) continue;
    if (file.path.starts_with("tests/tidy") || file.path == "tests/language_test.cc") continue;
    for (const SourceLine& line : Lines(file.text)) {
      for (std::string name : SourcesNamedIn(ProseOf(file, line.text))) {
        while (name.starts_with("../")) name.erase(0, 3);
        EXPECT_TRUE(known.contains(name))
            << file.path << ":" << line.number << " names " << name << ", which is not there";
      }
    }
  }
}

TEST(Documents, LinksLeadSomewhere) {
  for (const SourceFile& file : Tree()) {
    if (!file.path.ends_with(".md")) continue;
    for (const SourceLine& line : Lines(file.text)) {
      for (size_t at = line.text.find("]("); at != line.text.npos;
           at = line.text.find("](", at + 1)) {
        std::string target(line.text.substr(at + 2, line.text.find(')', at) - at - 2));
        target = target.substr(0, target.find('#'));
        if (target.empty() || target.find(':') != target.npos)
          continue;  // within the page, or on the web
        EXPECT_TRUE(Exists(file, target))
            << file.path << ":" << line.number << " links to " << target;
      }
    }
  }
}

}  // namespace tidy_test
}  // namespace headgate::tidy
