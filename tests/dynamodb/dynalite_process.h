// For tests: a server of DynamoDB on a free port, in memory: dynalite, from npm.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "headgate/store/dynamodb/dynamodb_backend.h"
#include "tests/server_process.h"
#include "tests/source_dir.h"

namespace headgate::dynamodb_test {

class DynaliteProcess {
 public:
  DynaliteProcess() : port_(FreePort()) {
    // It takes any keys.
    ::setenv("AWS_ACCESS_KEY_ID", "test", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    // Two tables may be in the making at a time, and each for no time.
    process_.Start({"node", (SourceDir() / "tests/integration/node_modules/.bin/dynalite").string(),
                    "--host", "127.0.0.1", "--port", std::to_string(port_), "--createTableMs", "0"},
                   [this] { return AskServer(port_, "GET / HTTP/1.0\r\n\r\n") != ""; });
  }

  uint16_t port() const { return port_; }
  std::string url(const std::string& table) const {
    return fmt::format("dynamodb://{}?region=local&endpoint=http://127.0.0.1:{}", table, port_);
  }
  void MakeTable(const std::string& table) const {
    const auto made = store::dynamodb::CreateTable({.url = url(table)}, std::chrono::seconds(20));
    EXPECT_TRUE(made.ok()) << made.status();
  }
  void Kill() { process_.Kill(); }
  void Freeze() const { process_.Freeze(); }
  void Thaw() const { process_.Thaw(); }

 private:
  uint16_t port_;
  ServerProcess process_{"dynalite"};
};

}  // namespace headgate::dynamodb_test
