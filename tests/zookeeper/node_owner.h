// For tests: a user of ZooKeeper's digest scheme who closes nodes to all others. Its calls wait.
#pragma once

#include <gtest/gtest.h>
#ifndef THREADED
#define THREADED
#endif
#include <zookeeper/zookeeper.h>

#include <string>
#include <string_view>
#include <thread>

namespace headgate::zookeeper_test {

class NodeOwner {
 public:
  explicit NodeOwner(const std::string& server)
      : handle_(::zookeeper_init(server.c_str(), nullptr, 4'000, nullptr, nullptr, 0)) {
    while (::zoo_state(handle_) != ZOO_CONNECTED_STATE) std::this_thread::yield();
    constexpr std::string_view kLogin = "owner:secret";
    EXPECT_EQ(::zoo_add_auth(handle_, "digest", kLogin.data(), kLogin.size(), nullptr, nullptr),
              ZOK);
  }
  ~NodeOwner() { ::zookeeper_close(handle_); }
  NodeOwner(const NodeOwner&) = delete;

  void Close(const std::string& path) {
    EXPECT_EQ(::zoo_set_acl(handle_, path.c_str(), -1, &ZOO_CREATOR_ALL_ACL), ZOK);
  }
  void Open(const std::string& path) {
    EXPECT_EQ(::zoo_set_acl(handle_, path.c_str(), -1, &ZOO_OPEN_ACL_UNSAFE), ZOK);
  }
  void Set(const std::string& path, std::string_view text) {
    EXPECT_EQ(::zoo_set(handle_, path.c_str(), text.data(), static_cast<int>(text.size()), -1),
              ZOK);
  }
  void Make(const std::string& path, std::string_view text) {
    EXPECT_EQ(::zoo_create(handle_, path.c_str(), text.data(), static_cast<int>(text.size()),
                           &ZOO_CREATOR_ALL_ACL, 0, nullptr, 0),
              ZOK);
  }
  void Delete(const std::string& path) { EXPECT_EQ(::zoo_delete(handle_, path.c_str(), -1), ZOK); }

 private:
  zhandle_t* handle_;
};

}  // namespace headgate::zookeeper_test
