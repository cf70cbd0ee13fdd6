// Rate limits in your own program: the C interface of libheadgate.
//
//   headgate_limiter* limiter = headgate_new("api_key: 100/minute burst 20", error, sizeof error);
//   headgate_entry entry = {"api_key", key};
//   headgate_verdict verdict;
//   if (headgate_check(limiter, &entry, 1, 1, &verdict) == HEADGATE_OK && verdict.allowed) serve();
//
// Any number of threads may use one limiter at once. Texts are UTF-8 and end with a zero byte. All
// times are nanoseconds. No function keeps a pointer that it was given.
//
// Symbols have a version (HEADGATE_1, HEADGATE_2). A later library keeps them; new functions come
// with a new version. The buckets are in memory: a store of your own needs C++.
// docs/guides/embedding.md has an example for Python.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEADGATE_API __attribute__((visibility("default")))
#else
#define HEADGATE_API
#endif

typedef struct headgate_limiter headgate_limiter;

// A key and its value, such as api_key and k1. An empty key is HEADGATE_INVALID: it can only be a
// mistake, and no rule would limit it.
typedef struct {
  const char* key;
  const char* value;
} headgate_entry;

// A descriptor, for headgate_check_all.
typedef struct {
  const headgate_entry* entries;
  size_t count;   // of entries; from 1 to 32
  uint64_t cost;  // 0 takes nothing
} headgate_descriptor;

// The answer to one request.
typedef struct {
  int32_t allowed;      // 1: the request may pass
  int32_t limited;      // 1: a rule applied; otherwise the numbers are 0
  uint64_t limit;       // requests per window, or the burst of a bucket
  uint64_t remaining;   // requests that would still pass now
  int64_t retry_after;  // until the same request may pass; INT64_MAX: never
  int64_t reset_after;  // until the bucket is full again
  int64_t wait;         // queue rules: how long to hold the request
} headgate_verdict;

// The results of functions; negative ones are errors, and then nothing has changed.
enum {
  HEADGATE_OK = 0,
  HEADGATE_INVALID = -1,       // wrong arguments, rules or snapshot
  HEADGATE_NOT_FOUND = -2,     // no rule applies
  HEADGATE_NOT_POSSIBLE = -3,  // for example a refund to a queue
  HEADGATE_TOO_SMALL = -4      // the buffer is too small
};

// The version of the library, such as "0.1.0".
HEADGATE_API const char* headgate_version(void);

// A limiter with these rules: one per line (LF or CR LF), in the domain "default". NULL if they are
// not valid, or if there is no memory; `error`, if not NULL, then gets a message of at most
// `error_size` bytes with its zero byte.
HEADGATE_API headgate_limiter* headgate_new(const char* rules, char* error, size_t error_size);

// The same with the text of a rule file (YAML), at most `max_buckets` buckets (0: 1,048,576; at
// most 2^36), and the buckets of a snapshot (NULL: none). `rules` may be NULL.
HEADGATE_API headgate_limiter* headgate_new_from(const char* rules, const char* rule_file,
                                                 uint64_t max_buckets, const void* snapshot,
                                                 size_t snapshot_size, char* error,
                                                 size_t error_size);

// The same with a clock that stands still at `now`, nanoseconds since 1970, until headgate_advance
// moves it. For tests, so that they need not sleep. `now` is from 0 to HEADGATE_TIME_MAX.
HEADGATE_API headgate_limiter* headgate_new_at(int64_t now, const char* rules,
                                               const char* rule_file, uint64_t max_buckets,
                                               const void* snapshot, size_t snapshot_size,
                                               char* error, size_t error_size);
// Moves the clock of such a limiter forward. No other thread may use the limiter meanwhile.
// HEADGATE_NOT_POSSIBLE if the limiter has the clock of the system; HEADGATE_INVALID if the time
// would go back, or beyond HEADGATE_TIME_MAX.
HEADGATE_API int headgate_advance(headgate_limiter* limiter, int64_t nanoseconds);
// In the year 2116.
#define HEADGATE_TIME_MAX (INT64_C(1) << 62)

// No thread may use the limiter any more. NULL is allowed.
HEADGATE_API void headgate_free(headgate_limiter* limiter);

// Takes `cost` if the request may pass; otherwise takes nothing. At most 32 entries.
HEADGATE_API int headgate_check(headgate_limiter* limiter, const headgate_entry* entries,
                                size_t count, uint64_t cost, headgate_verdict* verdict);
// The same in a domain.
HEADGATE_API int headgate_check_in(headgate_limiter* limiter, const char* domain,
                                   const headgate_entry* entries, size_t count, uint64_t cost,
                                   headgate_verdict* verdict);
// Decides about several descriptors at once, at most 64, and writes one verdict for each to
// `verdicts`. If the rule file of the domain says `all_or_nothing: true`, nothing is taken unless
// all of them pass.
HEADGATE_API int headgate_check_all(headgate_limiter* limiter, const char* domain,
                                    const headgate_descriptor* descriptors, size_t count,
                                    headgate_verdict* verdicts);
// Answers like headgate_check_in, and takes nothing.
HEADGATE_API int headgate_peek(headgate_limiter* limiter, const char* domain,
                               const headgate_entry* entries, size_t count, uint64_t cost,
                               headgate_verdict* verdict);
// Gives back the cost that a check took.
HEADGATE_API int headgate_refund(headgate_limiter* limiter, const char* domain,
                                 const headgate_entry* entries, size_t count, uint64_t cost);
// Makes the bucket full, and forgets its past.
HEADGATE_API int headgate_reset(headgate_limiter* limiter, const char* domain,
                                const headgate_entry* entries, size_t count);

// Replaces the rules. Costs that were taken under the old rules stay taken. After an error the old
// rules stay in force. Either text may be NULL.
HEADGATE_API int headgate_set_rules(headgate_limiter* limiter, const char* rules,
                                    const char* rule_file, char* error, size_t error_size);

// Frees expired buckets, and follows corrections of the system's clock. Optional: call it every few
// seconds from one thread.
HEADGATE_API void headgate_maintain(headgate_limiter* limiter);

// Writes the buckets to `buffer`, for a later limiter, and their size to `*size`. If `capacity` is
// too small, writes only the size, and returns HEADGATE_TOO_SMALL. Keep the bytes private.
HEADGATE_API int headgate_snapshot(headgate_limiter* limiter, void* buffer, size_t capacity,
                                   size_t* size);

#ifdef __cplusplus
}
#endif
