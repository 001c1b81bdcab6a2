/* Look up the functions that MPI-4 added in the MPI that runs. */
#include <dlfcn.h>
#include <string.h>

#include "../common/arguments.h"
#include "mpi_functions.h"

struct mpi4 mpi4;
struct large large;

static const struct {
    void *slot; /* of a function pointer */
    const char *name;
} ADDED[ADDED_CALLS] = {
    [BARRIER_INIT] = {&mpi4.Barrier_init, "MPI_Barrier_init"},
    [BCAST_INIT] = {&mpi4.Bcast_init, "MPI_Bcast_init"},
    [ALLREDUCE_INIT] = {&mpi4.Allreduce_init, "MPI_Allreduce_init"},
    [REDUCE_INIT] = {&mpi4.Reduce_init, "MPI_Reduce_init"},
    [REDUCE_SCATTER_INIT] = {&mpi4.Reduce_scatter_init, "MPI_Reduce_scatter_init"},
    [REDUCE_SCATTER_BLOCK_INIT] = {&mpi4.Reduce_scatter_block_init,
                                   "MPI_Reduce_scatter_block_init"},
    [GATHER_INIT] = {&mpi4.Gather_init, "MPI_Gather_init"},
    [GATHERV_INIT] = {&mpi4.Gatherv_init, "MPI_Gatherv_init"},
    [SCATTER_INIT] = {&mpi4.Scatter_init, "MPI_Scatter_init"},
    [SCATTERV_INIT] = {&mpi4.Scatterv_init, "MPI_Scatterv_init"},
    [ALLGATHER_INIT] = {&mpi4.Allgather_init, "MPI_Allgather_init"},
    [ALLGATHERV_INIT] = {&mpi4.Allgatherv_init, "MPI_Allgatherv_init"},
    [ALLTOALL_INIT] = {&mpi4.Alltoall_init, "MPI_Alltoall_init"},
    [ALLTOALLV_INIT] = {&mpi4.Alltoallv_init, "MPI_Alltoallv_init"},
    [ALLTOALLW_INIT] = {&mpi4.Alltoallw_init, "MPI_Alltoallw_init"},
    [PSEND_INIT] = {&mpi4.Psend_init, "MPI_Psend_init"},
    [PRECV_INIT] = {&mpi4.Precv_init, "MPI_Precv_init"},
    [PREADY] = {&mpi4.Pready, "MPI_Pready"},
};

/* Look up all of them; NULL where this MPI has none. */
void bind_added_calls(void)
{
    for (int i = 1; i < ADDED_CALLS; i++) {
        void *function = dlsym(RTLD_DEFAULT, ADDED[i].name);
        memcpy(ADDED[i].slot, &function, sizeof function);
    }
}

/* Refuse `benchmark` where this MPI lacks what it calls. */
void refuse_what_is_lacking(const struct benchmark *benchmark)
{
    int last = benchmark->added == PSEND_INIT ? PREADY : (int)benchmark->added;
    for (int i = (int)benchmark->added; i && i <= last; i++)
        if (!dlsym(RTLD_DEFAULT, ADDED[i].name))
            refuse("%s: this MPI has no %s, which came with MPI-4; leave this benchmark out",
                   benchmark->name, ADDED[i].name);
}

/* ---- large counts ---- */

static const struct {
    void *slot; /* of a function pointer */
    const char *name;
} LARGE_CALLS[] = {
    [SEND] = {&large.Send, "MPI_Send_c"},
    [RECV] = {&large.Recv, "MPI_Recv_c"},
    [ISEND] = {&large.Isend, "MPI_Isend_c"},
    [IRECV] = {&large.Irecv, "MPI_Irecv_c"},
    [BCAST] = {&large.Bcast, "MPI_Bcast_c"},
    [ALLREDUCE] = {&large.Allreduce, "MPI_Allreduce_c"},
    [REDUCE] = {&large.Reduce, "MPI_Reduce_c"},
    [GATHER] = {&large.Gather, "MPI_Gather_c"},
    [GATHERV] = {&large.Gatherv, "MPI_Gatherv_c"},
    [SCATTER] = {&large.Scatter, "MPI_Scatter_c"},
    [SCATTERV] = {&large.Scatterv, "MPI_Scatterv_c"},
    [ALLGATHER] = {&large.Allgather, "MPI_Allgather_c"},
    [ALLGATHERV] = {&large.Allgatherv, "MPI_Allgatherv_c"},
    [ALLTOALL] = {&large.Alltoall, "MPI_Alltoall_c"},
    [ALLTOALLV] = {&large.Alltoallv, "MPI_Alltoallv_c"},
    [PUT] = {&large.Put, "MPI_Put_c"},
    [GET] = {&large.Get, "MPI_Get_c"},
};

/* The first function that `benchmark` would need for large counts and this MPI lacks. */
enum call missing_call(const struct benchmark *benchmark)
{
    if (!benchmark->calls[0])
        return INTS_ALONE;
    for (int i = 0; i < MOST_CALLS && benchmark->calls[i]; i++)
        if (!dlsym(RTLD_DEFAULT, LARGE_CALLS[benchmark->calls[i]].name))
            return benchmark->calls[i];
    return NO_CALL;
}

/* Look up what `benchmark` calls; what is missing was refused before. */
void bind_large_calls(const struct benchmark *benchmark)
{
    for (int i = 0; i < MOST_CALLS && benchmark->calls[i]; i++) {
        void *function = dlsym(RTLD_DEFAULT, LARGE_CALLS[benchmark->calls[i]].name);
        memcpy(LARGE_CALLS[benchmark->calls[i]].slot, &function, sizeof function);
    }
}

/* As errors name it. */
const char *name_of(enum call call)
{
    return LARGE_CALLS[call].name;
}
