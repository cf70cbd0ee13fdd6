// For the tests of this folder: a directory that is removed with this object, and the usual ways to
// change files in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace headgate::watch::file {

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-watch-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

  // Opens, truncates, writes, closes.
  void Write(std::string_view name, std::string_view text) const {
    std::ofstream(*this / name, std::ios::binary | std::ios::trunc) << text;
  }
  // Writes beside the file and renames over it.
  void Replace(std::string_view name, std::string_view text) const {
    Write(".replacement", text);
    Rename(".replacement", name);
  }
  void Rename(std::string_view from, std::string_view to) const {
    std::filesystem::rename(*this / from, *this / to);
  }
  void Remove(std::string_view name) const { std::filesystem::remove_all(*this / name); }
  void MakeDirectory(std::string_view name) const {
    std::filesystem::create_directories(*this / name);
  }
  void Link(std::string_view target, std::string_view name) const {
    std::filesystem::create_symlink(target, *this / name);
  }
  // Retargets a symbolic link in one step, as Kubernetes does with `..data`.
  void Swap(std::string_view target, std::string_view name) const {
    Link(target, "..data_tmp");
    Rename("..data_tmp", name);
  }

 private:
  std::string path_;
};

}  // namespace headgate::watch::file
