/* A library of the stack that needs MPI: neighbours in a row of ranks exchange their edges. */
#include "halo.h"

void halo_exchange(double *rows, int count, int width, MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    double *first = rows + width, *last = rows + (long)count * width;
    MPI_Sendrecv(first, width, MPI_DOUBLE, above, 0, last + width, width, MPI_DOUBLE, below, 0,
                 comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, width, MPI_DOUBLE, below, 1, rows, width, MPI_DOUBLE, above, 1, comm,
                 MPI_STATUS_IGNORE);
}
