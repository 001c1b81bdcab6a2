/* The last rank prints as many numbered lines as the first argument says. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long lines = rank == size - 1 && argc > 1 ? atol(argv[1]) : 0;
    for (long line = 0; line < lines; line++)
        printf("%ld\n", line);
    fflush(stdout);
    sleep(1); /* so that who started us can be looked at when all has come */
    return MPI_Finalize();
}
