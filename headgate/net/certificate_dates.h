// Sentences about certificates that are not valid at a given time. Internal to net.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

struct x509_st;
struct x509_store_st;

namespace headgate::net {

// Why peers refuse the certificate at this time; empty if they do not.
std::string WhyOutOfDate(const x509_st* certificate, std::string_view file, std::time_t now_s);

// Why the certificates signed by authorities in `store` are refused at this time: a sentence for
// each authority. Leaves out authorities that have been renewed: another one with the same name is
// valid.
std::vector<std::string> AuthoritiesOutOfDate(x509_store_st* store, std::string_view file,
                                              std::time_t now_s);

}  // namespace headgate::net
