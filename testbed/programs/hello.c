/* One line per rank, after a small proof that the ranks are one working world: a barrier, a sum,
 * and a message of 1 MiB around the ring, both checked. Exits with the number in argv[1], if any.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 1 << 20 };

static void must(int ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "hello: wrong %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 9);
}

static void ring(int rank, int size) {
    char *out = malloc(MESSAGE), *in = calloc(MESSAGE, 1), *expected = malloc(MESSAGE);
    int from = (rank + size - 1) % size;
    must(out && in && expected, "memory");
    memset(out, 'a' + rank % 26, MESSAGE);
    memset(expected, 'a' + from % 26, MESSAGE);
    MPI_Sendrecv(out, MESSAGE, MPI_BYTE, (rank + 1) % size, 1, in, MESSAGE, MPI_BYTE, from, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(memcmp(in, expected, MESSAGE) == 0, "message");
    free(out);
    free(in);
    free(expected);
}

int main(int argc, char **argv) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, length, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    must(sum == size * (size - 1) / 2, "sum");
    ring(rank, size);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = 0;
    printf("RANK %d of SIZE %d LIBRARY %s\n", rank, size, library);
    fflush(stdout);
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
