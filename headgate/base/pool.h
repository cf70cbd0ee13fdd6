// A pool of reusable objects. It holds as many objects as were ever in use at once, and Take()
// allocates only when all of them are in use. An object keeps its state between users, in
// particular the memory it has allocated. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

namespace headgate::base {

template <typename T>
class Pool {
 public:
  T& Take() {
    if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<T>()).get());
    T& object = *free_.back();
    free_.pop_back();
    return object;
  }
  // `object` must come from this pool, and the caller must not use it afterwards.
  void Release(T& object) { free_.push_back(&object); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace headgate::base
