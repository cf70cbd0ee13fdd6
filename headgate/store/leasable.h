// Which limits lease: headgate/algorithm/lease.h.
#pragma once

#include "headgate/algorithm/lease.h"

namespace headgate::store {

using algorithm::CanLease;

}  // namespace headgate::store
