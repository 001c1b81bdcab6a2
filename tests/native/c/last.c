/* Waits between MPI_Init and its end for a line. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char line[8];
    MPI_Init(&argc, &argv);
    puts("in");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    if (argc > 1 && !strcmp(argv[1], "abort"))
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Finalize();
    return 0;
}
