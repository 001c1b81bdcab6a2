/* Imports a symbol that MPICH has since 5.0: on an older libmpi.so.12 the program starts, and
 * dies in the call, as functions are bound when they are first called. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length;
    void *room = malloc(1 << 16), *back;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!room || MPI_Comm_attach_buffer(MPI_COMM_WORLD, room, 1 << 16) != MPI_SUCCESS) return 9;
    if (MPI_Comm_detach_buffer(MPI_COMM_WORLD, &back, &length) != MPI_SUCCESS) return 9;
    MPI_Get_library_version(library, &length);
    printf("RANK %d of SIZE %d LIBRARY %.*s\n", rank, size, 20, library);
    MPI_Finalize();
    free(room);
    return 0;
}
