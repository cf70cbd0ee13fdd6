/* For LD_PRELOAD: CLOCK_BOOTTIME less the seconds that a file names, as on a virtual machine that was stopped for so long
   without its clock being told. The file is named by STOPPED_CLOCK, and is 8 bytes: nanoseconds of the machine. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static const volatile int64_t* stopped;
static int (*real)(clockid_t, struct timespec*);

__attribute__((constructor)) static void begin(void) {
  real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int file = open(getenv("STOPPED_CLOCK"), O_RDONLY);
  stopped = (const volatile int64_t*)mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = real(clock, time);
  if (clock != CLOCK_BOOTTIME || result != 0) return result;
  const int64_t ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec - *stopped;
  time->tv_sec = ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
  return 0;
}
