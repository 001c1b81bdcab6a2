/* What mpigraft-bench takes the large-count functions and those of MPI-4 for, held against an MPI-4 header. */
#include "../../../src/mpigraft/native/bench/mpi_functions.h"

const char program_name[] = "prototypes";

#define SAME(name) large.name = MPI_##name##_c
#define ADDS(name) mpi4.name = MPI_##name

int main(void)
{
    SAME(Send), SAME(Recv), SAME(Isend), SAME(Irecv), SAME(Bcast), SAME(Allreduce), SAME(Reduce);
    SAME(Gather), SAME(Gatherv), SAME(Scatter), SAME(Scatterv), SAME(Allgather), SAME(Allgatherv);
    SAME(Alltoall), SAME(Alltoallv), SAME(Put), SAME(Get);
    ADDS(Barrier_init), ADDS(Bcast_init), ADDS(Allreduce_init), ADDS(Reduce_init);
    ADDS(Reduce_scatter_init), ADDS(Reduce_scatter_block_init), ADDS(Gather_init);
    ADDS(Gatherv_init), ADDS(Scatter_init), ADDS(Scatterv_init), ADDS(Allgather_init);
    ADDS(Allgatherv_init), ADDS(Alltoall_init), ADDS(Alltoallv_init), ADDS(Alltoallw_init);
    ADDS(Psend_init), ADDS(Precv_init), ADDS(Pready);
    return 0;
}
