#include "headgate/limiter/request.h"

namespace headgate::limiter {

void KeptRequest::Keep(const Request& request) {
  size_t bytes = request.domain.size() + request.once.id.size();
  size_t entry_count = 0;
  for (const rule::Descriptor& descriptor : request.descriptors) {
    bytes += descriptor.given_limit.size();
    entry_count += descriptor.entries.size();
    for (const rule::Entry& entry : descriptor.entries)
      bytes += entry.key.size() + entry.value.size();
  }
  // Reserved, so that no view into them becomes invalid. Not a string, which moves short texts.
  std::vector<char> texts;
  texts.reserve(bytes);
  std::vector<rule::Entry> entries;
  entries.reserve(entry_count);
  const auto kept = [&](std::string_view text) {
    const size_t begin = texts.size();
    texts.insert(texts.end(), text.begin(), text.end());
    return std::string_view(texts.data() + begin, text.size());
  };
  std::vector<rule::Descriptor> descriptors(request.descriptors.begin(), request.descriptors.end());
  for (rule::Descriptor& descriptor : descriptors) {
    const size_t begin = entries.size();
    for (const rule::Entry& entry : descriptor.entries)
      entries.push_back({.key = kept(entry.key), .value = kept(entry.value)});
    descriptor.entries = std::span(entries).subspan(begin);
    descriptor.given_limit = kept(descriptor.given_limit);
  }
  Request copy = request;
  copy.domain = kept(request.domain);
  copy.once.id = kept(request.once.id);
  std::vector<Request::Undone> undone(request.undone.begin(), request.undone.end());
  texts_.swap(texts);
  entries_.swap(entries);
  descriptors_.swap(descriptors);
  undone_.swap(undone);
  copy.descriptors = descriptors_;
  copy.undone = undone_;
  request_ = copy;
}

size_t KeptRequest::bytes() const {
  return texts_.size() + entries_.size() * sizeof(rule::Entry) +
         descriptors_.size() * sizeof(rule::Descriptor);
}

}  // namespace headgate::limiter
