#include "headgate/net/ticket_keys.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "headgate/base/check.h"

namespace headgate::net {
namespace {

TicketKey NewTicketKey() {
  TicketKey key;
  const auto fill = [](auto& bytes) {
    HEADGATE_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  };
  fill(key.name);
  fill(key.cipher);
  fill(key.mac);
  return key;
}

void Forget(std::optional<TicketKey>& key) {
  if (key) OPENSSL_cleanse(&*key, sizeof(TicketKey));
  key.reset();
}

}  // namespace

TicketKeys::TicketKeys(base::BootTime now) : current_(NewTicketKey()), since_(now) {}

TicketKeys::~TicketKeys() {
  Forget(previous_);
  OPENSSL_cleanse(&current_, sizeof(TicketKey));
}

TicketKey TicketKeys::Current(base::BootTime now) {
  const std::lock_guard lock(mutex_);
  Rotate(now);
  return current_;
}

std::optional<TicketKey> TicketKeys::Find(const unsigned char* name, base::BootTime now) {
  const std::lock_guard lock(mutex_);
  Rotate(now);
  const auto is_named = [name](const TicketKey& key) {
    return std::equal(key.name.begin(), key.name.end(), name);
  };
  if (is_named(current_)) return current_;
  return previous_ && is_named(*previous_) ? previous_ : std::nullopt;
}

void TicketKeys::Rotate(base::BootTime now) {
  const base::Duration age = now - since_;
  if (age < kLife) return;
  Forget(previous_);
  if (age < 2 * kLife) previous_ = current_;
  current_ = NewTicketKey();
  since_ = now;
}

}  // namespace headgate::net
