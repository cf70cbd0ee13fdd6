/* For LD_PRELOAD: names whose addresses a file says. GIVEN_NAMES names the file. A line is a name and its addresses, with single
   spaces between them; without addresses the lookup of this name fails. All other names are those of the system. A test replaces the
   file by renaming another one, so that nobody reads half of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*resolver)(const char*, const char*, const struct addrinfo*, struct addrinfo**);

static int resolve_line(resolver real, char* addresses, const char* service, const struct addrinfo* hints, struct addrinfo** results) {
  struct addrinfo numeric = {0};
  if (hints != NULL) numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  struct addrinfo** end = results;
  *end = NULL;
  char* rest = NULL;
  for (char* one = strtok_r(addresses, " \n", &rest); one != NULL; one = strtok_r(NULL, " \n", &rest)) {
    const int error = real(one, service, &numeric, end);
    if (error != 0) return error;
    while (*end != NULL) end = &(*end)->ai_next;
  }
  return *results == NULL ? EAI_NONAME : 0;
}

int getaddrinfo(const char* restrict name, const char* restrict service, const struct addrinfo* restrict hints,
                struct addrinfo** restrict results) {
  const resolver real = (resolver)dlsym(RTLD_NEXT, "getaddrinfo");
  FILE* const file = name == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST)) ? NULL : fopen(getenv("GIVEN_NAMES"), "re");
  if (file == NULL) return real(name, service, hints, results);
  char line[4096];
  const size_t size = strlen(name);
  int result = -1;
  int found = 0;
  while (!found && fgets(line, sizeof(line), file) != NULL) {
    found = strncmp(line, name, size) == 0 && (line[size] == ' ' || line[size] == '\n');
    if (found) result = resolve_line(real, line + size, service, hints, results);
  }
  fclose(file);
  return found ? result : real(name, service, hints, results);
}
