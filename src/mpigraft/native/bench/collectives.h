/* Collectives. Each is written once, and called in three ways: at once; started and waited for,
 * with or without computation between; made ready once, then started and waited for.
 *
 * Rooted ones turn the root from iteration to iteration, as Intel's benchmarks do: with one root,
 * ranks that only send would run ahead and the batch would measure a pipeline. OSU keeps rank 0
 * and has a barrier after each.
 */
#ifndef MPIGRAFT_COLLECTIVES_H
#define MPIGRAFT_COLLECTIVES_H

#include "../common/check.h"
#include "pt2pt.h"
#include "compute.h"
#include "message.h"
#include "mpi_functions.h"
#include "run.h"

static int root_of(const struct run *run, long i)
{
    return (int)(i % roots_of(run));
}

/* Of a sum that replaces what was summed, the next iteration would sum the sums, without end; the
 * maximum of what is the maximum already stays. */
static MPI_Op operation(const struct run *run)
{
    return in_place(run) ? MPI_MAX : MPI_SUM;
}

static const void *input(const struct run *run)
{
    return in_place(run) ? MPI_IN_PLACE : run->send.wire;
}

/* The root's part of a gather, sum or scatter may be where it belongs; others send as ever. */
static const void *input_to(const struct run *run, int root)
{
    return in_place(run) && run->rank == root ? MPI_IN_PLACE : run->send.wire;
}

static void *output_from(const struct run *run, int root)
{
    return in_place(run) && run->rank == root ? MPI_IN_PLACE : run->recv.wire;
}

/* ---- packing by hand, before and after a call ---- */

static inline void idle(struct run *run, int root)
{
    (void)run, (void)root;
}

static inline void pack_all(struct run *run, int root)
{
    (void)root;
    pack(run);
}

static inline void unpack_all(struct run *run, int root)
{
    (void)root;
    unpack(run);
}

static inline void pack_at_root(struct run *run, int root)
{
    if (run->rank == root)
        pack(run);
}

static inline void unpack_at_root(struct run *run, int root)
{
    if (run->rank == root)
        unpack(run);
}

/* A broadcast has one buffer, in which the root packs and the others unpack. */
static inline void pack_in_place(struct run *run, int root)
{
    if (run->message.datatype == DATATYPE_PACKED && run->rank == root)
        pack_bytes(run->recv.wire, run->recv.data, run->message.bytes);
}

static inline void unpack_from_root(struct run *run, int root)
{
    if (run->rank != root)
        unpack(run);
}

/* ---- arguments ----
 * OF is empty for arrays of ints and large_ for those of MPI_Count and MPI_Aint. */

#define TYPE run->message.type
#define COUNT run->message.count, TYPE
#define OUT_EACH(OF) run->outgoing.OF##counts, run->outgoing.OF##places, TYPE
#define IN_EACH(OF) run->incoming.OF##counts, run->incoming.OF##places, TYPE
#define OUT_ONE(OF) run->outgoing.OF##counts[0], TYPE
#define IN_ONE(OF) run->incoming.OF##counts[0], TYPE
#define TYPED(side) run->side.counts, run->side.places, run->side.types

#define BARRIER_GIVEN(OF) run->comm
#define BCAST_GIVEN(OF) run->recv.wire, COUNT, root, run->comm
#define ALLREDUCE_GIVEN(OF) input(run), run->recv.wire, COUNT, operation(run), run->comm
#define REDUCE_GIVEN(OF) input_to(run, root), run->recv.wire, COUNT, operation(run), root, run->comm
#define REDUCE_SCATTER_GIVEN(OF)                                                                         \
    run->send.wire, run->recv.wire, run->outgoing.OF##counts, TYPE, MPI_SUM, run->comm
#define REDUCE_SCATTER_BLOCK_GIVEN(OF) run->send.wire, run->recv.wire, COUNT, MPI_SUM, run->comm
#define GATHER_GIVEN(OF) input_to(run, root), COUNT, run->recv.wire, COUNT, root, run->comm
#define GATHERV_GIVEN(OF) input_to(run, root), OUT_ONE(OF), run->recv.wire, IN_EACH(OF), root, run->comm
#define SCATTER_GIVEN(OF) run->send.wire, COUNT, output_from(run, root), COUNT, root, run->comm
#define SCATTERV_GIVEN(OF)                                                                               \
    run->send.wire, OUT_EACH(OF), output_from(run, root), IN_ONE(OF), root, run->comm
#define ALLGATHER_GIVEN(OF) input(run), COUNT, run->recv.wire, COUNT, run->comm
#define ALLGATHERV_GIVEN(OF) input(run), OUT_ONE(OF), run->recv.wire, IN_EACH(OF), run->comm
#define ALLTOALL_GIVEN(OF) input(run), COUNT, run->recv.wire, COUNT, run->comm
#define ALLTOALLV_GIVEN(OF) input(run), OUT_EACH(OF), run->recv.wire, IN_EACH(OF), run->comm
#define ALLTOALLW_GIVEN(OF) input(run), TYPED(outgoing), run->recv.wire, TYPED(incoming), run->comm

/* ---- three ways to call ---- */

/* `name` with `arguments`: what a rank does before it and after it. */
#define STARTED(name, ARGUMENTS, before, after)                                                    \
    static void i##name(struct run *run, long i)                                                   \
    {                                                                                              \
        int root = root_of(run, i);                                                                \
        MPI_Request request;                                                                       \
        before(run, root);                                                                         \
        OK(MPI_I##name(ARGUMENTS(), &request));                                                    \
        compute(run->work);                                                                        \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                                                 \
        after(run, root);                                                                          \
    }

#define MADE_READY(name, Name, ARGUMENTS, before, after)                                           \
    static void ready_##name(struct run *run)                                                      \
    {                                                                                              \
        for (int root = 0; root < roots_of(run); root++)                                           \
            CALL_ADDED(Name##_init, ARGUMENTS(), MPI_INFO_NULL,                                    \
                       &run->requests[run->persistent++]);                                         \
    }                                                                                              \
    static void name##_again(struct run *run, long i)                                              \
    {                                                                                              \
        int root = root_of(run, i);                                                                \
        before(run, root);                                                                         \
        OK(MPI_Start(&run->requests[root]));                                                       \
        OK(MPI_Wait(&run->requests[root], MPI_STATUS_IGNORE));                                     \
        after(run, root);                                                                          \
    }

#define AT_ONCE(name, call, before, after)                                                         \
    static void name(struct run *run, long i)                                                      \
    {                                                                                              \
        int root = root_of(run, i);                                                                \
        before(run, root);                                                                         \
        call;                                                                                      \
        after(run, root);                                                                          \
    }

/* Of ints alone, and as mpi_functions.h has it. */
#define COLLECTIVE_OF_INTS(name, Name, ARGUMENTS, before, after)                                   \
    AT_ONCE(name, OK(MPI_##Name(ARGUMENTS())), before, after)                                      \
    STARTED(name, ARGUMENTS, before, after)                                                        \
    MADE_READY(name, Name, ARGUMENTS, before, after)

#define ANY_COUNT(Name, ARGUMENTS)                                                                 \
    do {                                                                                           \
        if (run->large)                                                                            \
            CALL_LARGE(Name, ARGUMENTS(large_));                                                   \
        else                                                                                       \
            OK(MPI_##Name(ARGUMENTS()));                                                           \
    } while (0)

#define COLLECTIVE(name, Name, ARGUMENTS, before, after)                                           \
    AT_ONCE(name, ANY_COUNT(Name, ARGUMENTS), before, after)                                       \
    STARTED(name, ARGUMENTS, before, after)                                                        \
    MADE_READY(name, Name, ARGUMENTS, before, after)

COLLECTIVE_OF_INTS(barrier, Barrier, BARRIER_GIVEN, idle, idle)
COLLECTIVE(bcast, Bcast, BCAST_GIVEN, pack_in_place, unpack_from_root)
COLLECTIVE(allreduce, Allreduce, ALLREDUCE_GIVEN, idle, idle)
COLLECTIVE(reduce, Reduce, REDUCE_GIVEN, idle, idle)
COLLECTIVE_OF_INTS(reduce_scatter, Reduce_scatter, REDUCE_SCATTER_GIVEN, idle, idle)
COLLECTIVE_OF_INTS(reduce_scatter_block, Reduce_scatter_block, REDUCE_SCATTER_BLOCK_GIVEN, idle, idle)
COLLECTIVE(gather, Gather, GATHER_GIVEN, pack_all, unpack_at_root)
COLLECTIVE(gatherv, Gatherv, GATHERV_GIVEN, pack_all, unpack_at_root)
COLLECTIVE(scatter, Scatter, SCATTER_GIVEN, pack_at_root, unpack_all)
COLLECTIVE(scatterv, Scatterv, SCATTERV_GIVEN, pack_at_root, unpack_all)
COLLECTIVE(allgather, Allgather, ALLGATHER_GIVEN, pack_all, unpack_all)
COLLECTIVE(allgatherv, Allgatherv, ALLGATHERV_GIVEN, pack_all, unpack_all)
COLLECTIVE(alltoall, Alltoall, ALLTOALL_GIVEN, pack_all, unpack_all)
COLLECTIVE(alltoallv, Alltoallv, ALLTOALLV_GIVEN, pack_all, unpack_all)
COLLECTIVE_OF_INTS(alltoallw, Alltoallw, ALLTOALLW_GIVEN, pack_all, unpack_all)

/* Collectives among neighbours, on a Cartesian grid or on a graph.
 *
 * `cart`: a torus of two dimensions, as even as MPI_Dims_create makes it, and the four ranks beside
 * each other in it: where a dimension is short, one rank is several neighbours, or its own. `graph`:
 * each rank sends to those 1, 2, 4, ... ranks further on and so receives from as many others.
 */

enum { DIMENSIONS = 2 };

/* Ranks to which this one sends, or from which it receives, in the order of the standard. */
struct neighbors {
    int count, rank[MOST_NEIGHBORS];
};

static void torus(const struct run *run, int *lengths)
{
    lengths[0] = lengths[1] = 0;
    OK(MPI_Dims_create(run->size, DIMENSIONS, lengths));
}

static struct neighbors neighbors_in_torus(const struct run *run)
{
    int lengths[DIMENSIONS];
    torus(run, lengths);
    int row = run->rank / lengths[1], column = run->rank % lengths[1];
    struct neighbors made = {0};
    for (int d = 0; d < DIMENSIONS; d++)
        for (int step = -1; step <= 1; step += 2) {
            int r = (row + (d == 0 ? step : 0) + lengths[0]) % lengths[0];
            int c = (column + (d == 1 ? step : 0) + lengths[1]) % lengths[1];
            made.rank[made.count++] = r * lengths[1] + c;
        }
    return made;
}

/* `way`: 1 those to which it sends, -1 those from which it receives. */
static struct neighbors neighbors_in_graph(const struct run *run, int way)
{
    struct neighbors made = {0};
    for (long far = 1; far < run->size; far *= 2)
        made.rank[made.count++] = (int)((run->rank + way * far + run->size) % run->size);
    return made;
}

static struct neighbors neighbors_of(const struct run *run, int way)
{
    return run->options->topology == TOPOLOGY_GRAPH ? neighbors_in_graph(run, way)
                                                    : neighbors_in_torus(run);
}

static void meet_neighbors(struct run *run)
{
    if (run->options->topology == TOPOLOGY_GRAPH) {
        struct neighbors to = neighbors_of(run, 1), from = neighbors_of(run, -1);
        int weight[MOST_NEIGHBORS];
        for (int k = 0; k < MOST_NEIGHBORS; k++)
            weight[k] = 1;
        OK(MPI_Dist_graph_create_adjacent(run->comm, from.count, from.rank, weight, to.count,
                                          to.rank, weight, MPI_INFO_NULL, 0, &run->neighbors));
    } else {
        int lengths[DIMENSIONS], round[DIMENSIONS] = {1, 1};
        torus(run, lengths);
        OK(MPI_Cart_create(run->comm, DIMENSIONS, lengths, round, 0, &run->neighbors));
    }
    OK(MPI_Comm_set_errhandler(run->neighbors, MPI_ERRORS_RETURN));
}

/* ---- messages: one rank's are alike in whichever place it is a neighbour ---- */

static void one_to_neighbors(struct run *run)
{
    struct neighbors from = neighbors_of(run, -1);
    add_slot(run, &run->send, run->rank, -1, share(run, run->rank));
    for (int k = 0; k < from.count; k++)
        add_slot(run, &run->recv, from.rank[k], -1, share(run, from.rank[k]));
}

/* Sparse counts are those of ranks with an even sum. */
static size_t share_of_neighbors(const struct run *run, int from, int to)
{
    bool sparse = has(run, COUNTED) && run->options->counts == COUNTS_SPARSE;
    return sparse ? share(run, from + to) : share_between(run, from, to);
}

static void one_between_neighbors(struct run *run)
{
    struct neighbors to = neighbors_of(run, 1), from = neighbors_of(run, -1);
    for (int k = 0; k < to.count; k++)
        add_slot(run, &run->send, run->rank, to.rank[k],
                 share_of_neighbors(run, run->rank, to.rank[k]));
    for (int k = 0; k < from.count; k++)
        add_slot(run, &run->recv, from.rank[k], run->rank,
                 share_of_neighbors(run, from.rank[k], run->rank));
}

/* ---- calls ---- */

#define AROUND(side) run->side.counts, run->side.large_places, run->side.types

#define NEIGHBOR_ALLGATHER_GIVEN(OF) run->send.wire, COUNT, run->recv.wire, COUNT, run->neighbors
#define NEIGHBOR_ALLGATHERV_GIVEN(OF)                                                                    \
    run->send.wire, OUT_ONE(OF), run->recv.wire, IN_EACH(OF), run->neighbors
#define NEIGHBOR_ALLTOALL_GIVEN(OF) run->send.wire, COUNT, run->recv.wire, COUNT, run->neighbors
#define NEIGHBOR_ALLTOALLV_GIVEN(OF)                                                                     \
    run->send.wire, OUT_EACH(OF), run->recv.wire, IN_EACH(OF), run->neighbors
#define NEIGHBOR_ALLTOALLW_GIVEN(OF)                                                                     \
    run->send.wire, AROUND(outgoing), run->recv.wire, AROUND(incoming), run->neighbors

#define AMONG_NEIGHBORS(name, Name, ARGUMENTS)                                                     \
    AT_ONCE(name, OK(MPI_##Name(ARGUMENTS())), pack_all, unpack_all)                               \
    STARTED(name, ARGUMENTS, pack_all, unpack_all)

AMONG_NEIGHBORS(neighbor_allgather, Neighbor_allgather, NEIGHBOR_ALLGATHER_GIVEN)
AMONG_NEIGHBORS(neighbor_allgatherv, Neighbor_allgatherv, NEIGHBOR_ALLGATHERV_GIVEN)
AMONG_NEIGHBORS(neighbor_alltoall, Neighbor_alltoall, NEIGHBOR_ALLTOALL_GIVEN)
AMONG_NEIGHBORS(neighbor_alltoallv, Neighbor_alltoallv, NEIGHBOR_ALLTOALLV_GIVEN)
AMONG_NEIGHBORS(neighbor_alltoallw, Neighbor_alltoallw, NEIGHBOR_ALLTOALLW_GIVEN)

#endif
