// error: could not convert .now. from .*UnixClock.* to .*OwnersClock
#include "headgate/base/time.h"

using headgate::base::Instant;
using headgate::base::WallTime;

void Decide(Instant now);

#ifdef HEADGATE_CONTROL
void Ask(Instant now) { Decide(now); }
#else
void Ask(WallTime now) { Decide(now); }
#endif
