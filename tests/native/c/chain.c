/* A library that is preloaded behind the witness, as profilers and allocators are: it takes dlsym
 * itself, and finds what comes after it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#if defined __x86_64__
#define FIRST "GLIBC_2.2.5"
#else
#define FIRST "GLIBC_2.17"
#endif

static int calls;

void *dlsym(void *handle, const char *name)
{
    void *(*next)(void *, const char *);
    *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", FIRST);
    calls++;
    return next(handle, name);
}

/* The next of a name that this library has is the C library's, not this one again. */
int puts(const char *text)
{
    int (*next)(const char *);
    *(void **)&next = dlsym(RTLD_NEXT, "puts");
    return printf("[") < 0 || next((void *)next == (void *)puts ? "itself" : text);
}

__attribute__((destructor)) static void end(void)
{
    fprintf(stderr, "chain: %s\n", calls > 2 ? "called" : "passed over");
}
