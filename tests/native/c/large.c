/* A shim for MPICH's ABI: each call with large counts says once on stderr, by the rank that makes
 * it first, that it was made. Its header's prototypes are those of the standard. */
#include <mpi.h>
#include <stdio.h>

#define SAY(name, ...)                                  \
    do {                                                \
        static int times;                               \
        if (!times++)                                   \
            fputs("made MPI_" #name "_c\n", stderr);    \
        return PMPI_##name##_c(__VA_ARGS__);            \
    } while (0)

#define T MPI_Datatype
#define N MPI_Count
#define C MPI_Comm
typedef const MPI_Count *Ns;
typedef const MPI_Aint *As;

int MPI_Send_c(const void *b, N n, T t, int r, int g, C c) { SAY(Send, b, n, t, r, g, c); }
int MPI_Recv_c(void *b, N n, T t, int r, int g, C c, MPI_Status *s)
{
    SAY(Recv, b, n, t, r, g, c, s);
}
int MPI_Isend_c(const void *b, N n, T t, int r, int g, C c, MPI_Request *q)
{
    SAY(Isend, b, n, t, r, g, c, q);
}
int MPI_Irecv_c(void *b, N n, T t, int r, int g, C c, MPI_Request *q)
{
    SAY(Irecv, b, n, t, r, g, c, q);
}
int MPI_Bcast_c(void *b, N n, T t, int r, C c) { SAY(Bcast, b, n, t, r, c); }
int MPI_Allreduce_c(const void *b, void *d, N n, T t, MPI_Op o, C c)
{
    SAY(Allreduce, b, d, n, t, o, c);
}
int MPI_Reduce_c(const void *b, void *d, N n, T t, MPI_Op o, int r, C c)
{
    SAY(Reduce, b, d, n, t, o, r, c);
}
int MPI_Gather_c(const void *b, N n, T t, void *d, N m, T u, int r, C c)
{
    SAY(Gather, b, n, t, d, m, u, r, c);
}
int MPI_Gatherv_c(const void *b, N n, T t, void *d, Ns m, As p, T u, int r, C c)
{
    SAY(Gatherv, b, n, t, d, m, p, u, r, c);
}
int MPI_Scatter_c(const void *b, N n, T t, void *d, N m, T u, int r, C c)
{
    SAY(Scatter, b, n, t, d, m, u, r, c);
}
int MPI_Scatterv_c(const void *b, Ns n, As p, T t, void *d, N m, T u, int r, C c)
{
    SAY(Scatterv, b, n, p, t, d, m, u, r, c);
}
int MPI_Allgather_c(const void *b, N n, T t, void *d, N m, T u, C c)
{
    SAY(Allgather, b, n, t, d, m, u, c);
}
int MPI_Allgatherv_c(const void *b, N n, T t, void *d, Ns m, As p, T u, C c)
{
    SAY(Allgatherv, b, n, t, d, m, p, u, c);
}
int MPI_Alltoall_c(const void *b, N n, T t, void *d, N m, T u, C c)
{
    SAY(Alltoall, b, n, t, d, m, u, c);
}
int MPI_Alltoallv_c(const void *b, Ns n, As p, T t, void *d, Ns m, As q, T u, C c)
{
    SAY(Alltoallv, b, n, p, t, d, m, q, u, c);
}
int MPI_Put_c(const void *b, N n, T t, int r, MPI_Aint d, N m, T u, MPI_Win w)
{
    SAY(Put, b, n, t, r, d, m, u, w);
}
int MPI_Get_c(void *b, N n, T t, int r, MPI_Aint d, N m, T u, MPI_Win w)
{
    SAY(Get, b, n, t, r, d, m, u, w);
}
int MPI_Type_create_hindexed(int n, const int *l, const MPI_Aint *a, T t, T *u)
{
    static int times;
    if (!times++)
        fputs("made MPI_Type_create_hindexed\n", stderr);
    return PMPI_Type_create_hindexed(n, l, a, t, u);
}
