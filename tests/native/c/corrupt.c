/* A shim under mpigraft-bench: the call that CORRUPT names does its work, then one byte of what
 * arrived is wrong. AT counts from the start of the buffer. PLACE=error: it fails instead. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int chosen(const char *name)
{
    const char *want = getenv("CORRUPT");
    return want && !strcmp(want, name);
}

static int spoil(const char *name, void *buffer)
{
    if (!chosen(name))
        return MPI_SUCCESS;
    if (getenv("FAIL"))
        return MPI_ERR_OTHER;
    ((unsigned char *)buffer)[getenv("AT") ? atol(getenv("AT")) : 0] ^= 0x55;
    return MPI_SUCCESS;
}

#define DONE(name, call, buffer)                                        \
    do {                                                                \
        int code = call;                                                \
        return code != MPI_SUCCESS ? code : spoil(name, buffer);        \
    } while (0)

int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *st)
{
    DONE(n > 1 || g == 1 ? "Recv" : "none", PMPI_Recv(b, n, t, s, g, c, st), b);
}

static void *last;

int MPI_Irecv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Request *r)
{
    last = b;
    return PMPI_Irecv(b, n, t, s, g, c, r);
}

int MPI_Waitall(int n, MPI_Request *r, MPI_Status *s)
{
    int code = PMPI_Waitall(n, r, s);
    return code != MPI_SUCCESS || !last ? code : spoil("Waitall", last);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{
    int size;
    PMPI_Type_size(t, &size);
    int control = t == MPI_LONG || t == MPI_INT;
    DONE(control ? "none" : "Bcast", PMPI_Bcast(b, n, t, root, c), b);
}

int MPI_Allreduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
    int control = t == MPI_DOUBLE || t == MPI_INT || t == MPI_LONG_LONG;
    DONE(control ? "none" : "Allreduce", PMPI_Allreduce(s, b, n, t, o, c), b);
}

int MPI_Reduce(const void *s, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c)
{
    int rank;
    PMPI_Comm_rank(c, &rank);
    DONE(t == MPI_DOUBLE || rank != root ? "none" : "Reduce", PMPI_Reduce(s, b, n, t, o, root, c),
         b);
}

int MPI_Gather(const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root,
               MPI_Comm c)
{
    DONE("Gather", PMPI_Gather(s, n, t, b, m, u, root, c), b);
}

int MPI_Gatherv(const void *s, int n, MPI_Datatype t, void *b, const int *m, const int *d,
                MPI_Datatype u, int root, MPI_Comm c)
{
    DONE("Gatherv", PMPI_Gatherv(s, n, t, b, m, d, u, root, c), b);
}

int MPI_Scatter(const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, int root,
                MPI_Comm c)
{
    DONE("Scatter", PMPI_Scatter(s, n, t, b, m, u, root, c), b);
}

int MPI_Scatterv(const void *s, const int *n, const int *d, MPI_Datatype t, void *b, int m,
                 MPI_Datatype u, int root, MPI_Comm c)
{
    DONE("Scatterv", PMPI_Scatterv(s, n, d, t, b, m, u, root, c), b);
}

int MPI_Allgather(const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c)
{
    DONE("Allgather", PMPI_Allgather(s, n, t, b, m, u, c), b);
}

int MPI_Allgatherv(const void *s, int n, MPI_Datatype t, void *b, const int *m, const int *d,
                   MPI_Datatype u, MPI_Comm c)
{
    DONE("Allgatherv", PMPI_Allgatherv(s, n, t, b, m, d, u, c), b);
}

int MPI_Alltoall(const void *s, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c)
{
    DONE("Alltoall", PMPI_Alltoall(s, n, t, b, m, u, c), b);
}

int MPI_Alltoallv(const void *s, const int *n, const int *d, MPI_Datatype t, void *b, const int *m,
                  const int *e, MPI_Datatype u, MPI_Comm c)
{
    DONE("Alltoallv", PMPI_Alltoallv(s, n, d, t, b, m, e, u, c), b);
}

/* SamePlace: every access of a window reads, or sends, what the first one does. */
static const void *first_sent;

int MPI_Put(const void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u,
            MPI_Win w)
{
    static unsigned char copy[1 << 16];
    first_sent = first_sent && chosen("SamePlace") ? first_sent : b;
    if (!chosen("Put"))
        return PMPI_Put(first_sent, n, t, r, d, m, u, w);
    memcpy(copy, b, (size_t)n);
    int code = spoil("Put", copy);
    return code != MPI_SUCCESS ? code : PMPI_Put(copy, n, t, r, d, m, u, w);
}

int MPI_Get(void *b, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w)
{
    last = b;
    return PMPI_Get(b, n, t, r, chosen("SamePlace") ? 0 : d, m, u, w);
}

int MPI_Win_flush(int r, MPI_Win w)
{
    int code = PMPI_Win_flush(r, w);
    first_sent = NULL;
    return code != MPI_SUCCESS || !last ? code : spoil("Get", last);
}

int MPI_Win_allocate(MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void *b, MPI_Win *w)
{
    return chosen("Win_allocate") ? MPI_ERR_OTHER : PMPI_Win_allocate(n, u, i, c, b, w);
}

/* Several nodes on one, by their names: NODES of them, filled in order. */
int gethostname(char *name, size_t room)
{
    const char *nodes = getenv("NODES"), *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (nodes && rank && size)
        snprintf(name, room, "node%ld", atol(rank) * atol(nodes) / atol(size));
    else
        snprintf(name, room, "alone");
    return 0;
}
