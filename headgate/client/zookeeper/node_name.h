// Any text as the name of a znode, and back.
//
// ZooKeeper refuses "." and "..", control characters, some of Unicode, and a '/' separates names.
// So every byte but ASCII letters, digits and "_-~.:@+=,*" is written as '%' and two hexadecimal
// digits, as in RFC 3986, section 2.1. A name that people type by hand usually stays as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headgate::client::zookeeper {

// `text` must not contain NUL. Never empty if `text` is not.
std::string NodeNameOf(std::string_view text);

// The text of a name, which need not be written as NodeNameOf writes it. Nothing if the name is
// empty, or has a '%' without two hexadecimal digits.
std::optional<std::string> TextOfNodeName(std::string_view name);

// The path of a node below another: "ROOT/name", where `root` may be "/".
std::string Below(std::string_view root, std::string_view name);

// Whether `path` is an absolute path that ZooKeeper takes: "/", or names that are not empty, "."
// or "..", each after a '/', in UTF-8 without control characters, U+D800 to U+F8FF, and from U+FFF0
// on (validatePath of its PathUtils.java). Other paths can abort the C client.
bool IsNodePath(std::string_view path);

}  // namespace headgate::client::zookeeper
