#include "headgate/follow/tls_files.h"

#include <utility>
#include <vector>

namespace headgate::follow {

void TlsFiles::Follow(std::set<std::string> paths) {
  paths.erase("");
  if (paths.empty()) return;
  source_ = std::make_unique<watch::file::FileSource>(
      std::vector<std::string>(paths.begin(), paths.end()), loop_);
  bool first = true;
  source_->Subscribe([this, first](const rule::DocumentSet&) mutable {
    // The first report is of the files that were just loaded.
    if (!std::exchange(first, false)) OnChange();
  });
}

void TlsFiles::Reload() {
  if (source_ != nullptr) source_->Refresh();
}

void TlsFiles::OnChange() {
  const absl::Status status = load_();
  if (status.ok()) {
    loaded_.fetch_add(1, std::memory_order_relaxed);
    log_.Info("certificates.loaded", {{"of", of_}});
    return;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  log_.Error("certificates.refused",
             {{"of", of_},
              {"reason", std::string(status.message())},
              {"effect", std::string_view("new connections get the certificates in force")},
              {"hint", std::string_view(
                           "write the file again; a key and its certificate change together")}});
}

}  // namespace headgate::follow
