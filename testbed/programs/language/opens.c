/* Needs no MPI by name, and opens the one that its search path leads to. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char library[1 << 14];
    int length;
    void *mpi = dlopen(LIBMPI, RTLD_NOW | RTLD_GLOBAL);
    if (!mpi) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*start)(int *, char ***) = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
    int (*version)(char *, int *) = (int (*)(char *, int *))dlsym(mpi, "MPI_Get_library_version");
    int (*end)(void) = (int (*)(void))dlsym(mpi, "MPI_Finalize");
    start(0, 0);
    version(library, &length);
    library[strcspn(library, "\n")] = 0;
    printf("LIBRARY %s\n", library);
    fflush(stdout);
    return end();
}
