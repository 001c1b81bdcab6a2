/* A machine with little memory: /proc/meminfo, or another file of the kernel, says what MEMINFO
 * names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef STAT
#define INSTEAD_OF "/proc/stat"
#else
#define INSTEAD_OF "/proc/meminfo"
#endif

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    void *found = dlsym(RTLD_NEXT, "fopen");
    memcpy(&real, &found, sizeof found);
    const char *instead = getenv("MEMINFO");
    return real(instead && !strcmp(path, INSTEAD_OF) ? instead : path, mode);
}
