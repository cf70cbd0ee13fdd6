// error: no match for .operator[+].
#include "headgate/base/time.h"

using headgate::base::Duration;
using headgate::base::Instant;

#ifdef HEADGATE_CONTROL
Instant Later(Instant a, Duration b) { return a + b; }
#else
Instant Later(Instant a, Instant b) { return a + b; }
#endif
