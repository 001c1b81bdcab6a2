/* What each program of a language stack prints: its rank, its world, and the MPI that it runs on. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static inline void print_world(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = 0;
    if (sum == size * (size - 1) / 2)
        printf("RANK %d of SIZE %d LIBRARY %s\n", rank, size, library);
    fflush(stdout);
}
