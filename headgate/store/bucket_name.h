// What a shared store calls a bucket: readable, and no two buckets alike.
//
//   hg:{edge|api_key=k1|path=/search}      a rule's bucket: domain and matched entries
//   hg:{edge|api_key=k1#1}                 the second of several limits
//   hg:{edge|api_key_*}                    a pattern that stands for all that match it
//   hg:{edge|api_key=k1#minute}            a limit that the request itself brought
//   hg:{#throttle|user123}                 of CL.THROTTLE
//
// All of it is in braces, so that Redis Cluster hashes just that. In what a user wrote `{}%|=#`, spaces and whatever is
// not printable ASCII are percent-encoded: nobody can write himself into another's bucket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::store {

// Makes one name in `out`, whose capacity it reuses.
class BucketName {
 public:
  BucketName(std::string& out, std::string_view domain);
  // Of CL.THROTTLE and kin.
  static std::string_view OfThrottle(std::string_view key, std::string& out);

  void AddEntry(std::string_view key, std::string_view value);
  void AddPattern(std::string_view pattern);
  // The whole name, which is ended by this.
  std::string_view OfLimit(uint32_t limit_index);
  std::string_view OfOverride(std::string_view unit);

 private:
  std::string& out_;
};

}  // namespace headgate::store
