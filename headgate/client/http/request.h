// A request of HTTP and its answer.
#pragma once

#include <string>
#include <vector>

namespace headgate::client::http {

struct Request {
  std::string method = "POST";
  std::string target = "/";           // path and query
  std::vector<std::string> fields{};  // "Name: value"
  std::string body{};                 // only for POST and PUT
};

struct Answer {
  int status = 0;
  std::string body{};
  // The values of these fields; empty if there are none.
  std::string date{};
  std::string etag{};  // with its quotes
};

}  // namespace headgate::client::http
