/* A machine with little memory: /proc/meminfo says what MEMINFO names. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    void *found = dlsym(RTLD_NEXT, "fopen");
    memcpy(&real, &found, sizeof found);
    const char *instead = getenv("MEMINFO");
    return real(instead && !strcmp(path, "/proc/meminfo") ? instead : path, mode);
}
