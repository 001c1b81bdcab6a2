/* Functions that MPI-4 added: persistent collectives and partitioned messages.
 *
 * They are looked up when the program runs, so that one binary serves MPIs that lack them, and a
 * benchmark that needs one says so before MPI starts.
 */
#ifndef MPIGRAFT_ADDED_H
#define MPIGRAFT_ADDED_H

#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

#include "../common/check.h"
#include "run.h"

#define FROM const void *
#define INTO void *
#define BUFFER int, MPI_Datatype
#define SHARES const int *, const int *, MPI_Datatype
#define TYPED const int *, const int *, const MPI_Datatype *
#define READY MPI_Comm, MPI_Info, MPI_Request *

static struct {
    int (*Barrier_init)(READY);
    int (*Bcast_init)(INTO, BUFFER, int, READY);
    int (*Allreduce_init)(FROM, INTO, BUFFER, MPI_Op, READY);
    int (*Reduce_init)(FROM, INTO, BUFFER, MPI_Op, int, READY);
    int (*Reduce_scatter_init)(FROM, INTO, const int *, MPI_Datatype, MPI_Op, READY);
    int (*Reduce_scatter_block_init)(FROM, INTO, BUFFER, MPI_Op, READY);
    int (*Gather_init)(FROM, BUFFER, INTO, BUFFER, int, READY);
    int (*Gatherv_init)(FROM, BUFFER, INTO, SHARES, int, READY);
    int (*Scatter_init)(FROM, BUFFER, INTO, BUFFER, int, READY);
    int (*Scatterv_init)(FROM, SHARES, INTO, BUFFER, int, READY);
    int (*Allgather_init)(FROM, BUFFER, INTO, BUFFER, READY);
    int (*Allgatherv_init)(FROM, BUFFER, INTO, SHARES, READY);
    int (*Alltoall_init)(FROM, BUFFER, INTO, BUFFER, READY);
    int (*Alltoallv_init)(FROM, SHARES, INTO, SHARES, READY);
    int (*Alltoallw_init)(FROM, TYPED, INTO, TYPED, READY);
    int (*Psend_init)(FROM, int, MPI_Count, MPI_Datatype, int, int, READY);
    int (*Precv_init)(INTO, int, MPI_Count, MPI_Datatype, int, int, READY);
    int (*Pready)(int, MPI_Request);
} mpi4;

#undef FROM
#undef INTO
#undef BUFFER
#undef SHARES
#undef TYPED
#undef READY

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
static void bind_added_calls(void)
{
    for (int i = 1; i < ADDED_CALLS; i++) {
        void *function = dlsym(RTLD_DEFAULT, ADDED[i].name);
        memcpy(ADDED[i].slot, &function, sizeof function);
    }
}

/* Refuse `benchmark` where this MPI lacks what it calls. */
static void refuse_what_is_lacking(const struct benchmark *benchmark)
{
    int last = benchmark->added == PSEND_INIT ? PREADY : (int)benchmark->added;
    for (int i = (int)benchmark->added; i && i <= last; i++)
        if (!dlsym(RTLD_DEFAULT, ADDED[i].name))
            refuse("%s: this MPI has no %s, which came with MPI-4; leave this benchmark out",
                   benchmark->name, ADDED[i].name);
}

#define CALL_ADDED(name, ...)                                                                      \
    check_mpi(mpi4.name(__VA_ARGS__), "MPI_" #name "(" #__VA_ARGS__ ")", __FILE__, __LINE__)

#endif
