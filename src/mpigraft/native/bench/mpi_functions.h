/* Functions that MPI-4 added: persistent collectives, partitioned messages, large counts.
 *
 * They are looked up when the program runs, so that one binary serves MPIs that lack them, and a
 * benchmark that needs one says so before MPI starts.
 */
#ifndef MPIGRAFT_MPI_FUNCTIONS_H
#define MPIGRAFT_MPI_FUNCTIONS_H

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stddef.h>
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

/* MPI's calls that take a count: with an int as far as ints go, beyond that with an MPI_Count.
 *
 * The latter are MPI-4's functions that end in `_c`. One binary serves MPIs with and without
 * them, and headers of MPI-3 do not declare them, so they are looked up when the program runs.
 */

#ifndef INT_LIMIT
#define INT_LIMIT INT_MAX /* tests lower it: short messages then take the way of long ones */
#endif

#define BUFFER MPI_Count, MPI_Datatype
#define SHARES const MPI_Count *, const MPI_Aint *, MPI_Datatype
#define FROM const void *
#define INTO void *

static struct {
    int (*Send)(FROM, BUFFER, int, int, MPI_Comm);
    int (*Recv)(INTO, BUFFER, int, int, MPI_Comm, MPI_Status *);
    int (*Isend)(FROM, BUFFER, int, int, MPI_Comm, MPI_Request *);
    int (*Irecv)(INTO, BUFFER, int, int, MPI_Comm, MPI_Request *);
    int (*Bcast)(INTO, BUFFER, int, MPI_Comm);
    int (*Allreduce)(FROM, INTO, BUFFER, MPI_Op, MPI_Comm);
    int (*Reduce)(FROM, INTO, BUFFER, MPI_Op, int, MPI_Comm);
    int (*Gather)(FROM, BUFFER, INTO, BUFFER, int, MPI_Comm);
    int (*Gatherv)(FROM, BUFFER, INTO, SHARES, int, MPI_Comm);
    int (*Scatter)(FROM, BUFFER, INTO, BUFFER, int, MPI_Comm);
    int (*Scatterv)(FROM, SHARES, INTO, BUFFER, int, MPI_Comm);
    int (*Allgather)(FROM, BUFFER, INTO, BUFFER, MPI_Comm);
    int (*Allgatherv)(FROM, BUFFER, INTO, SHARES, MPI_Comm);
    int (*Alltoall)(FROM, BUFFER, INTO, BUFFER, MPI_Comm);
    int (*Alltoallv)(FROM, SHARES, INTO, SHARES, MPI_Comm);
    int (*Put)(FROM, BUFFER, int, MPI_Aint, BUFFER, MPI_Win);
    int (*Get)(INTO, BUFFER, int, MPI_Aint, BUFFER, MPI_Win);
} large;

#undef BUFFER
#undef SHARES
#undef FROM
#undef INTO

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
static enum call missing_call(const struct benchmark *benchmark)
{
    if (!benchmark->calls[0])
        return INTS_ALONE;
    for (int i = 0; i < MOST_CALLS && benchmark->calls[i]; i++)
        if (!dlsym(RTLD_DEFAULT, LARGE_CALLS[benchmark->calls[i]].name))
            return benchmark->calls[i];
    return NO_CALL;
}

/* Look up what `benchmark` calls; what is missing was refused before. */
static void bind_large_calls(const struct benchmark *benchmark)
{
    for (int i = 0; i < MOST_CALLS && benchmark->calls[i]; i++) {
        void *function = dlsym(RTLD_DEFAULT, LARGE_CALLS[benchmark->calls[i]].name);
        memcpy(LARGE_CALLS[benchmark->calls[i]].slot, &function, sizeof function);
    }
}

#define CALL_LARGE(name, ...)                                                                      \
    check_mpi(large.name(__VA_ARGS__), "MPI_" #name "_c(" #__VA_ARGS__ ")", __FILE__, __LINE__)

/* MPI_`name`, or MPI_`name`_c where counts are large: the arguments are the same but for arrays. */
#define CALL(name, ...)                                                                            \
    do {                                                                                           \
        if (run->large)                                                                            \
            CALL_LARGE(name, __VA_ARGS__);                                                         \
        else                                                                                       \
            OK(MPI_##name(__VA_ARGS__));                                                           \
    } while (0)

#endif
