// For tests: real ZooKeeper servers on free ports, alone or as an ensemble.
//
// A tick lasts 200 ms, so sessions last 400 ms to 4 s.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tests/server_process.h"

namespace headgate::zookeeper_test {

class ZooKeeperProcess {
 public:
  // `ensemble`: the lines "server.N=…" of all servers, and the number of this one.
  explicit ZooKeeperProcess(std::string_view ensemble = {}, uint32_t number = 0)
      : port_(FreePort()) {
    if (number > 0) std::ofstream(folder() + "/myid") << number << "\n";
    std::ofstream(folder() + "/zoo.cfg")
        << fmt::format("tickTime=200\ndataDir={}\nclientPort={}\nclientPortAddress=127.0.0.1\n",
                       folder(), port_)
        << "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n"
        << "forceSync=no\ninitLimit=10\nsyncLimit=5\n"
        << ensemble;
    if (number == 0) Start();
  }

  uint16_t port() const { return port_; }
  std::string server() const { return fmt::format("127.0.0.1:{}", port_); }
  const std::string& folder() const { return process_.folder(); }

  void Start() {
    Spawn([this] { return IsServing(); });
  }
  // Without waiting for it: a server of an ensemble serves when most of them run.
  void Begin() {
    Spawn([] { return true; });
  }
  bool IsServing() const { return AskServer(port_, "srvr").starts_with("Zookeeper version"); }
  void Kill() { process_.Kill(); }
  void Freeze() const { process_.Freeze(); }
  void Thaw() const { process_.Thaw(); }

 private:
  void Spawn(const std::function<bool()>& ready) {
    process_.Start({"java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                    "-Dorg.slf4j.simpleLogger.logFile=" + folder() + "/log", "-cp",
                    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain", folder() + "/zoo.cfg"},
                   ready);
  }

  uint16_t port_;
  ServerProcess process_{"zookeeper"};
};

// Three servers that hold the same nodes.
class Ensemble {
 public:
  Ensemble() {
    std::string lines;
    for (uint32_t number = 1; number <= kServers; ++number)
      lines += fmt::format("server.{}=127.0.0.1:{}:{}\n", number, FreePort(), FreePort());
    for (uint32_t number = 1; number <= kServers; ++number) servers_.emplace_back(lines, number);
    for (ZooKeeperProcess& server : servers_) server.Begin();
    for (ZooKeeperProcess& server : servers_)
      while (!server.IsServing()) std::this_thread::yield();
  }

  ZooKeeperProcess& server(size_t index) { return servers_[index]; }
  size_t size() const { return servers_.size(); }
  // "HOST:PORT,HOST:PORT,HOST:PORT"
  std::string servers() const {
    std::string list;
    for (const ZooKeeperProcess& server : servers_)
      list += (list.empty() ? "" : ",") + server.server();
    return list;
  }

 private:
  static constexpr uint32_t kServers = 3;
  std::vector<ZooKeeperProcess> servers_;
};

}  // namespace headgate::zookeeper_test
