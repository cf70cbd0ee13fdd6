#include "tests/tidy/floors.h"

namespace headgate::tidy {
namespace {

const Folders kHttpFront = {"limiter", "rule",         "algorithm", "wire", "http",
                            "net",     "http/routing", "access",    "base"};
Folders With(Folders folders, const Folders& more) {
  folders.insert(more.begin(), more.end());
  return folders;
}

}  // namespace

const std::map<std::string, Floor, std::less<>>& Floors() {
  static const std::map<std::string, Floor, std::less<>> floors = {
      {"base", {0, {}}},
      {"algorithm", {1, {"base"}}},
      {"capacity", {1, {"base"}}},
      {"permit", {1, {"base"}}},
      {"wire", {1, {"base"}}},
      {"rule", {2, {"algorithm", "permit", "base"}}},
      {"rule/read", {2, {"rule", "algorithm", "permit", "base"}}},
      {"rule/edit", {2, {"rule/read", "rule", "base"}}},
      {"store", {2, {"algorithm", "permit", "base"}}},
      {"share", {2, {"algorithm", "capacity", "base"}}},
      {"limiter/lease", {3, {"store", "algorithm", "base"}}},
      {"limiter", {3, {"rule", "store", "algorithm", "permit", "base"}}},
      {"limiter/shared",
       {3, {"limiter", "limiter/lease", "rule", "store", "algorithm", "permit", "base"}}},
      {"testing",
       {4,
        {"limiter/shared", "limiter/lease", "limiter", "rule/read", "rule", "store", "algorithm",
         "permit", "base"}}},
      {"library", {4, {"limiter", "rule/read", "rule", "store", "algorithm", "base"}}},
      {"net", {4, {"base"}}},
      {"files", {4, {"net", "base"}}},
      {"client/zookeeper", {4, {"net", "base"}}},
      {"client/http", {4, {"net", "base"}}},
      {"access", {4, {"store", "algorithm", "wire", "net", "base"}}},
      {"http", {4, {"wire", "net", "base"}}},
      {"http/routing", {4, {"http", "access", "wire", "net", "base"}}},
      {"http/http2", {4, {"http", "wire", "net", "base"}}},
      {"http/http1", {4, {"http", "net", "base"}}},
      {"observe", {4, {"limiter", "rule", "algorithm", "base"}}},
      {"jwt", {2, {"wire", "base"}}},
      {"mapping", {4, {"rule/read", "rule", "jwt", "wire", "base"}}},
      {"store/cas", {5, {"store", "algorithm", "permit", "net", "base"}}},
      {"store/redis", {5, {"store/cas", "store", "algorithm", "permit", "wire", "net", "base"}}},
      {"store/zookeeper", {5, {"store/cas", "store", "client/zookeeper", "wire", "net", "base"}}},
      {"store/dynamodb",
       {5, {"store/cas", "store", "client/http", "files", "wire", "net", "base"}}},
      {"store/open",
       {5, {"store/redis", "store/zookeeper", "store/dynamodb", "store", "net", "base"}}},
      {"shared_store",
       {5,
        {"store/open", "limiter/shared", "limiter/lease", "limiter", "store/cas", "store",
         "observe", "rule", "net", "base"}}},
      {"snapshot", {5, {"store", "files", "observe", "net", "base"}}},
      {"share/fleet", {5, {"share", "store/cas", "store", "algorithm", "base"}}},
      {"handover", {5, {"share", "observe", "net", "base"}}},
      {"watch/file", {5, {"rule", "wire", "files", "net", "base"}}},
      {"watch/zookeeper", {5, {"client/zookeeper", "rule", "wire", "files", "net", "base"}}},
      {"watch",
       {5,
        {"watch/file", "watch/zookeeper", "client/zookeeper", "rule/read", "rule/edit", "rule",
         "wire", "net", "base"}}},
      {"replay", {5, {"rule", "algorithm", "wire", "base"}}},
      {"bench", {5, {"wire", "http/http1", "http", "net", "base"}}},
      {"front/resp", {5, With({"store", "observe", "permit"}, kHttpFront)}},
      {"answer", {5, {"limiter", "rule", "algorithm", "wire", "http", "net", "base"}}},
      {"front/api", {5, With({"answer", "observe", "permit"}, kHttpFront)}},
      {"gate",
       {5,
        {"answer", "mapping", "jwt", "limiter", "observe", "rule", "algorithm", "wire", "base"}}},
      {"front/auth", {5, With({"gate", "answer", "mapping", "jwt"}, kHttpFront)}},
      {"front/spoe", {5, With({"gate", "answer", "mapping"}, kHttpFront)}},
      {"front/mux", {5, {"http/http2", "http/http1", "http", "net", "base"}}},
      {"proxy",
       {5,
        {"gate", "answer", "mapping", "limiter", "observe", "rule", "share", "capacity",
         "algorithm", "http", "wire", "net", "base"}}},
      {"follow",
       {5,
        {"gate", "mapping", "watch", "watch/file", "limiter", "rule/read", "rule", "store",
         "algorithm", "access", "observe", "files", "net", "base"}}},
      {"proxy/upstream",
       {5,
        {"proxy", "handover", "follow", "observe", "share", "rule", "http/routing", "http",
         "access", "wire", "net", "base"}}},
      {"front/admin", {5, With({"observe"}, kHttpFront)}},
      {"app/settings",
       {6,
        {"store/open", "watch", "watch/file", "observe", "limiter", "store", "rule/read", "rule",
         "capacity", "algorithm", "client/http", "http", "wire", "files", "net", "base"}}},
      {"app/runtime",
       {6, {"app/settings", "handover",   "follow", "gate",        "shared_store", "store/open",
            "snapshot",     "watch/file", "watch",  "front/admin", "front/mux",    "observe",
            "limiter",      "store",      "rule",   "http/http2",  "http/routing", "http",
            "access",       "files",      "net",    "base"}}},
      {"app/serve",
       {6, With({"app/runtime", "app/settings", "app/sidecar", "follow", "front/admin", "front/api",
                 "front/auth", "front/mux", "front/resp", "front/spoe", "gate", "observe", "files"},
                kHttpFront)}},
      {"app/sidecar",
       {6, With({"app/runtime", "app/settings", "follow", "gate", "handover", "proxy/upstream",
                 "proxy", "share/fleet", "share", "shared_store", "store/cas", "capacity",
                 "front/mux", "http/http1", "http/http2", "replay", "observe", "mapping", "files"},
                kHttpFront)}},
      {"app/tools",
       {6, With({"app/runtime", "app/settings", "follow", "bench", "front/api", "gate",
                 "store/open", "store", "rule/edit", "client/http", "files"},
                kHttpFront)}},
      {"app",
       {6,
        {"app/tools", "app/sidecar", "app/serve", "app/settings", "testing", "rule", "files", "net",
         "base"}}},
  };
  return floors;
}

const std::map<std::pair<std::string, std::string>, std::set<std::string>>& Parts() {
  static const std::map<std::pair<std::string, std::string>, std::set<std::string>> parts = {
      {{"observe", "limiter"},
       {"headgate/limiter/observer.h", "headgate/limiter/bucket_key.h",
        "headgate/limiter/bucket_name.h"}},
      {{"front/resp", "store"}, {"headgate/store/store.h", "headgate/store/limit_table.h"}},
  };
  return parts;
}

}  // namespace headgate::tidy
