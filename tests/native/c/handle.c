/* MPI by a library's handle, as Python's ctypes and Julia have it; and what else dlsym is for.
 * argv: the library, and the entry's name. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int init_(int *, char ***);
typedef int thread_(int *, char ***, int, int *);
typedef int final_(void);

int main(int argc, char **argv)
{
    void *mpi = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *twice = dlopen(argv[1], RTLD_NOW);
    if (argc < 3 || !mpi) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    int provided = -1, code = 0;
    void *entry = dlsym(mpi, argv[2]);
    if (!entry || entry != dlsym(twice, argv[2]) || dlsym(mpi, "MPI_Initx") || !dlerror())
        return 3;
    if (!strcmp(argv[2], "MPI_Init"))
        code = ((init_ *)entry)(NULL, NULL);
    else if (!strcmp(argv[2], "MPI_Init_thread"))
        code = ((thread_ *)entry)(NULL, NULL, 0, &provided);
    else
        return 4;
    if (code || (!strcmp(argv[2], "MPI_Init_thread") && provided < 0))
        return 5;
    return ((final_ *)dlsym(mpi, "MPI_Finalize"))();
}
