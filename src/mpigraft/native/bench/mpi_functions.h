/* Functions that MPI-4 added: persistent collectives, partitioned messages, large counts.
 *
 * They are looked up when the program runs, so that one binary serves MPIs that lack them, and a
 * benchmark that needs one says so before MPI starts.
 */
#ifndef MPIGRAFT_MPI_FUNCTIONS_H
#define MPIGRAFT_MPI_FUNCTIONS_H

#include <limits.h>
#include <mpi.h>

#include "../common/check.h"
#include "run.h"

#define FROM const void *
#define INTO void *
#define BUFFER int, MPI_Datatype
#define SHARES const int *, const int *, MPI_Datatype
#define TYPED const int *, const int *, const MPI_Datatype *
#define READY MPI_Comm, MPI_Info, MPI_Request *

extern struct mpi4 {
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

void bind_added_calls(void);
void refuse_what_is_lacking(const struct benchmark *benchmark);

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

extern struct large {
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

enum call missing_call(const struct benchmark *benchmark);
void bind_large_calls(const struct benchmark *benchmark);
const char *name_of(enum call call);

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
