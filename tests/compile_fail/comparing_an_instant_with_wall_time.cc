// error: no match for .operator<.
#include "headgate/base/time.h"

using headgate::base::Instant;
using headgate::base::WallTime;

#ifdef HEADGATE_CONTROL
bool Earlier(Instant a, Instant b) { return a < b; }
#else
bool Earlier(Instant a, WallTime b) { return a < b; }
#endif
