/* Heat in a square plate whose upper edge is hot, by Jacobi's method: heat [WIDTH [STEPS]].
 * Its figures are the same for every number of ranks that divides WIDTH. */
#include <stdio.h>
#include <stdlib.h>

#include "halo.h"

int main(int argc, char **argv) {
    int rank, size, width = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 200;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (width < size || width % size || steps < 1) {
        if (rank == 0) fprintf(stderr, "heat: ranks have to divide the width\n");
        MPI_Finalize();
        return 2;
    }
    int count = width / size;
    size_t cells = (size_t)(count + 2) * (size_t)width;
    double *now = calloc(cells, sizeof *now), *next = calloc(cells, sizeof *next);
    if (!now || !next) return 1;
    double begun = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        halo_exchange(now, count, width, MPI_COMM_WORLD);
        if (rank == 0)
            for (int x = 0; x < width; x++) now[x] = 100.0;
        for (int y = 1; y <= count; y++)
            for (int x = 0; x < width; x++) {
                double *cell = now + (long)y * width + x;
                double left = x ? cell[-1] : 0.0, right = x + 1 < width ? cell[1] : 0.0;
                next[(long)y * width + x] = 0.25 * (cell[-width] + cell[width] + left + right);
            }
        double *other = now;
        now = next;
        next = other;
    }
    double own = 0.0, all = 0.0;
    for (int y = 1; y <= count; y++)
        for (int x = 0; x < width; x++) own += now[(long)y * width + x];
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (rank == 0) {
        printf("ranks %d\nheat %.6f\ntime: %.6f s\n", size, all, MPI_Wtime() - begun);
        printf("library %.40s\n", version);
    }
    free(now);
    free(next);
    return MPI_Finalize();
}
