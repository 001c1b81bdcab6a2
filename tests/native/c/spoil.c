/* A shim for MPICH's ABI under mpigraft-bench: with SPOIL=1 the first byte of what a call delivers
 * is wrong, of calls that are started and of requests that are made ready when they are waited for;
 * with LOSE=1 what was to change a window is never sent. */
#include <mpi.h>
#include <stdlib.h>

static int spoils(void)
{
    return getenv("SPOIL") != NULL;
}

static int loses(void)
{
    return getenv("LOSE") != NULL;
}

static void spoil(void *buffer)
{
    if (spoils() && buffer && buffer != MPI_IN_PLACE)
        *(unsigned char *)buffer ^= 0x55;
}

/* ---- requests and where they deliver ---- */

enum { MOST = 4096 };
static struct {
    MPI_Request request;
    void *buffer;
} known[MOST];
static int count;

static int remember(int code, void *buffer, const MPI_Request *request)
{
    int at = 0;
    while (at < count && known[at].request != *request && known[at].request != MPI_REQUEST_NULL)
        at++;
    count += at == count;
    known[at].request = *request;
    known[at].buffer = buffer;
    return code;
}

static void *buffer_of(MPI_Request request)
{
    for (int i = 0; i < count; i++)
        if (known[i].request == request)
            return known[i].buffer;
    return NULL;
}

static void forget(MPI_Request request)
{
    for (int i = 0; i < count; i++)
        if (known[i].request == request)
            known[i].request = MPI_REQUEST_NULL;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Request before = *request;
    void *buffer = buffer_of(before);
    int code = PMPI_Wait(request, status);
    if (*request == MPI_REQUEST_NULL)
        forget(before);
    spoil(buffer);
    return code;
}

int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    void *first = NULL;
    for (int i = 0; i < n && !first; i++)
        first = buffer_of(requests[i]);
    int code = PMPI_Waitall(n, requests, statuses);
    spoil(first);
    return code;
}

int MPI_Request_free(MPI_Request *request)
{
    forget(*request);
    return PMPI_Request_free(request);
}

/* ---- one function of each kind: at once, started, made ready ---- */

#define P(...) (__VA_ARGS__)
#define ONCE(name, parameters, to, ...)                                                            \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        int code = PMPI_##name(__VA_ARGS__);                                                       \
        spoil(to);                                                                                 \
        return code;                                                                               \
    }
#define START(name, to, ...) return remember(PMPI_##name(__VA_ARGS__, r), to, r);

typedef MPI_Datatype T;
typedef MPI_Comm C;
typedef MPI_Request *R;
typedef const int *N;
typedef const MPI_Aint *A;
typedef const MPI_Datatype *Ts;
#define S const void *s
#define F S, int n, T t
#define I void *d, int m, T u

#define ALSO(iname, pname, parameters, to, ...)                                                    \
    int MPI_##iname(parameters, C c, R r) { START(iname, to, __VA_ARGS__, c) }                      \
    int MPI_##pname(parameters, C c, MPI_Info i, R r) { START(pname, to, __VA_ARGS__, c, i) }
#define LIST(...) __VA_ARGS__

ALSO(Ibcast, Bcast_init, LIST(void *d, int n, T t, int root), d, d, n, t, root)
ALSO(Iallreduce, Allreduce_init, LIST(S, void *d, int n, T t, MPI_Op o), d, s, d, n, t, o)
ALSO(Ireduce, Reduce_init, LIST(S, void *d, int n, T t, MPI_Op o, int root), d, s, d, n, t, o,
     root)
ALSO(Ireduce_scatter, Reduce_scatter_init, LIST(S, void *d, N n, T t, MPI_Op o), d, s, d, n, t, o)
ALSO(Ireduce_scatter_block, Reduce_scatter_block_init, LIST(S, void *d, int n, T t, MPI_Op o), d,
     s, d, n, t, o)
ALSO(Igather, Gather_init, LIST(F, I, int root), d, s, n, t, d, m, u, root)
ALSO(Igatherv, Gatherv_init, LIST(F, void *d, N m, N e, T u, int root), d, s, n, t, d, m, e, u,
     root)
ALSO(Iscatter, Scatter_init, LIST(F, I, int root), d, s, n, t, d, m, u, root)
ALSO(Iscatterv, Scatterv_init, LIST(S, N n, N e, T t, I, int root), d, s, n, e, t, d, m, u, root)
ALSO(Iallgather, Allgather_init, LIST(F, I), d, s, n, t, d, m, u)
ALSO(Iallgatherv, Allgatherv_init, LIST(F, void *d, N m, N e, T u), d, s, n, t, d, m, e, u)
ALSO(Ialltoall, Alltoall_init, LIST(F, I), d, s, n, t, d, m, u)
ALSO(Ialltoallv, Alltoallv_init, LIST(S, N n, N e, T t, void *d, N m, N f, T u), d, s, n, e, t, d,
     m, f, u)
ALSO(Ialltoallw, Alltoallw_init, LIST(S, N n, N e, Ts t, void *d, N m, N f, Ts u), d, s, n, e, t,
     d, m, f, u)
ALSO(Ineighbor_allgather, Neighbor_allgather_init, LIST(F, I), d, s, n, t, d, m, u)
ALSO(Ineighbor_allgatherv, Neighbor_allgatherv_init, LIST(F, void *d, N m, N e, T u), d, s, n, t,
     d, m, e, u)
ALSO(Ineighbor_alltoall, Neighbor_alltoall_init, LIST(F, I), d, s, n, t, d, m, u)
ALSO(Ineighbor_alltoallv, Neighbor_alltoallv_init, LIST(S, N n, N e, T t, void *d, N m, N f, T u),
     d, s, n, e, t, d, m, f, u)
ALSO(Ineighbor_alltoallw, Neighbor_alltoallw_init,
     LIST(S, N n, A e, Ts t, void *d, N m, A f, Ts u), d, s, n, e, t, d, m, f, u)

ONCE(Reduce_scatter, P(S, void *d, N n, T t, MPI_Op o, C c), d, s, d, n, t, o, c)
ONCE(Reduce_scatter_block, P(S, void *d, int n, T t, MPI_Op o, C c), d, s, d, n, t, o, c)
ONCE(Alltoallw, P(S, N n, N e, Ts t, void *d, N m, N f, Ts u, C c), d, s, n, e, t, d, m, f, u, c)
ONCE(Neighbor_allgather, P(F, I, C c), d, s, n, t, d, m, u, c)
ONCE(Neighbor_allgatherv, P(F, void *d, N m, N e, T u, C c), d, s, n, t, d, m, e, u, c)
ONCE(Neighbor_alltoall, P(F, I, C c), d, s, n, t, d, m, u, c)
ONCE(Neighbor_alltoallv, P(S, N n, N e, T t, void *d, N m, N f, T u, C c), d, s, n, e, t, d, m, f,
     u, c)
ONCE(Neighbor_alltoallw, P(S, N n, A e, Ts t, void *d, N m, A f, Ts u, C c), d, s, n, e, t, d, m,
     f, u, c)

/* ---- pairs ---- */

int MPI_Recv_init(void *d, int n, T t, int from, int tag, C c, R r)
{
    START(Recv_init, d, d, n, t, from, tag, c)
}

int MPI_Precv_init(void *d, int p, MPI_Count n, T t, int from, int tag, C c, MPI_Info i, R r)
{
    START(Precv_init, d, d, p, n, t, from, tag, c, i)
}

ONCE(Recv, P(void *d, int n, T t, int from, int tag, C c, MPI_Status *st), tag > 2 ? d : NULL, d,
     n, t, from, tag, c, st)

/* ---- windows: results are there when an access ends ---- */

static void *result;
typedef MPI_Win W;

#define LOST                                                                                       \
    if (loses())                                                                                   \
        return MPI_SUCCESS;

int MPI_Accumulate(S, int n, T t, int to, MPI_Aint at, int m, T u, MPI_Op o, W w)
{
    static unsigned char wrong[1 << 12];
    int size;
    LOST
    PMPI_Type_size(t, &size);
    for (int i = 0; i < n * size; i++)
        wrong[i] = ((const unsigned char *)s)[i];
    spoil(wrong);
    return PMPI_Accumulate(wrong, n, t, to, at, m, u, o, w);
}

int MPI_Get_accumulate(S, int n, T t, I, int to, MPI_Aint at, int k, T v, MPI_Op o, W w)
{
    result = d;
    LOST
    return PMPI_Get_accumulate(s, n, t, d, m, u, to, at, k, v, o, w);
}

int MPI_Fetch_and_op(S, void *d, T t, int to, MPI_Aint at, MPI_Op o, W w)
{
    result = d;
    LOST
    return PMPI_Fetch_and_op(s, d, t, to, at, o, w);
}

int MPI_Compare_and_swap(S, const void *e, void *d, T t, int to, MPI_Aint at, W w)
{
    result = d;
    LOST
    return PMPI_Compare_and_swap(s, e, d, t, to, at, w);
}

int MPI_Put(F, int to, MPI_Aint at, int m, T u, W w)
{
    LOST
    return PMPI_Put(s, n, t, to, at, m, u, w);
}

int MPI_Get(I, int to, MPI_Aint at, int n, T t, W w)
{
    LOST
    return PMPI_Get(d, m, u, to, at, n, t, w);
}

ONCE(Win_flush, P(int to, W w), result, to, w)
ONCE(Win_unlock, P(int to, W w), result, to, w)
ONCE(Win_complete, P(W w), result, w)
