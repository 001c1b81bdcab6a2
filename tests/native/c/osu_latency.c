/* Stands for OSU's osu_latency, which no package has: its option -m, its title and its rows. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIMES = 100, TAG = 1 };

static double latency(int rank, char *buffer, int size) {
    double begun = MPI_Wtime();
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) MPI_Send(buffer, size, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
        if (rank < 2)
            MPI_Recv(buffer, size, MPI_CHAR, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(buffer, size, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begun) / TIMES / 2 * 1e6;
}

int main(int argc, char **argv) {
    int option, low = 1, high = 8, rank;
    while ((option = getopt(argc, argv, "+:hvm:x:i:")) != -1)
        if (option == 'm' && sscanf(optarg, "%d:%d", &low, &high) != 2) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *buffer = calloc((size_t)high, 1);
    if (rank == 0) printf("# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n");
    for (int size = low; buffer && size <= high; size *= 2) {
        double us = latency(rank, buffer, size);
        if (rank == 0) printf("%-10d%*.2f\n", size, 18, us);
    }
    free(buffer);
    return MPI_Finalize();
}
