/* Prints by a function of a library that is preloaded, and asks for names in every way. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *self = dlopen(NULL, RTLD_NOW);
    if (dlsym(RTLD_DEFAULT, "fopen") != dlsym(self, "fopen") || !dlsym(RTLD_NEXT, "fopen"))
        return 2;
    if (dlsym(RTLD_DEFAULT, "no such name") || !dlerror() || dlerror())
        return 3;
    puts("told");
    return 0;
}
