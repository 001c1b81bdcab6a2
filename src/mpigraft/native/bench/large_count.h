/* MPI's calls that take a count: with an int as far as ints go, beyond that with an MPI_Count.
 *
 * The latter are MPI-4's functions that end in `_c`. One binary serves MPIs with and without
 * them, and headers of MPI-3 do not declare them, so they are looked up when the program runs.
 */
#ifndef MPIGRAFT_LARGE_H
#define MPIGRAFT_LARGE_H

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "../common/check.h"
#include "run.h"

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

/* Look up what `benchmark` calls; whatever is missing was refused before. */
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
