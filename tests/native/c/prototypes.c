/* What mpigraft-bench takes the large-count functions for, held against an MPI-4 header. */
#include "../../../src/mpigraft/native/large.h"

#define SAME(name) large.name = MPI_##name##_c

int main(void)
{
    SAME(Send), SAME(Recv), SAME(Isend), SAME(Irecv), SAME(Bcast), SAME(Allreduce), SAME(Reduce);
    SAME(Gather), SAME(Gatherv), SAME(Scatter), SAME(Scatterv), SAME(Allgather), SAME(Allgatherv);
    SAME(Alltoall), SAME(Alltoallv), SAME(Put), SAME(Get);
    return 0;
}
