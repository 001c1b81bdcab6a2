/* Time of a call that does next to nothing, in ns: MPI_Iprobe of MPI_PROC_NULL, and MPI_Isend and
 * MPI_Irecv to itself with MPI_Waitall. Rank 0 prints both. */
#include <mpi.h>
#include <stdio.h>

enum { CALLS = 2000000, MESSAGES = 200000 };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, there;
    char from[8] = "", to[8];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    double probe = MPI_Wtime() - start;
    start = MPI_Wtime();
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request both[2];
        MPI_Irecv(to, 8, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(from, 8, MPI_CHAR, rank, 1, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    double message = MPI_Wtime() - start;
    if (!rank)
        printf("%.2f %.2f\n", probe / CALLS * 1e9, message / MESSAGES / 3 * 1e9);
    MPI_Finalize();
    return 0;
}
