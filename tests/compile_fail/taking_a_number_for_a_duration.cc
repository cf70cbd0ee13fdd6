// error: could not convert .5. from .int. to
#include "headgate/base/time.h"

using headgate::base::Duration;

void Wait(Duration d);

#ifdef HEADGATE_CONTROL
void WaitALittle() { Wait(Duration(5)); }
#else
void WaitALittle() { Wait(5); }
#endif
