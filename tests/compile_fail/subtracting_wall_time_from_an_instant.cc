// error: no match for .operator-.
#include "headgate/base/time.h"

using headgate::base::Duration;
using headgate::base::Instant;
using headgate::base::WallTime;

#ifdef HEADGATE_CONTROL
Duration Between(Instant a, Instant b) { return a - b; }
#else
Duration Between(Instant a, WallTime b) { return a - b; }
#endif
