/* A host of plug-ins, as Python is: MPI comes with a plug-in, where RTLD_NEXT does not look. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plug_in = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    if (!plug_in) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int (*work)(void);
    *(void **)&work = dlsym(plug_in, "work");
    return work();
}
