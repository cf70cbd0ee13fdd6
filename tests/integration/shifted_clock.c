/* For LD_PRELOAD: clocks that are off by what a file names. SHIFTED_CLOCK names the file, of two numbers of 8 bytes each in the
   order of the machine, nanoseconds: what CLOCK_BOOTTIME is off by, as on a virtual machine that was stopped without its clock
   being told, and what the time of day is off by, as where somebody set it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t* off;
static int (*real)(clockid_t, struct timespec*);

// May be called before main, because allocators ask for the time.
__attribute__((constructor)) static void begin(void) {
  if (off != NULL) return;
  real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int file = open(getenv("SHIFTED_CLOCK"), O_RDONLY);
  off = (const volatile int64_t*)mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  begin();
  const int result = real(clock, time);
  if ((clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME) || result != 0) return result;
  const int64_t ns = time->tv_sec * INT64_C(1000000000) + time->tv_nsec + off[clock == CLOCK_REALTIME];
  time->tv_sec = ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
  return 0;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  (void)zone;
  struct timespec now;
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}
