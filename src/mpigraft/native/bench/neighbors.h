/* Collectives among neighbours, on a Cartesian grid or on a graph.
 *
 * `cart`: a torus of two dimensions, as even as MPI_Dims_create makes it, and the four ranks beside
 * each other in it: where a dimension is short, one rank is several neighbours, or its own. `graph`:
 * each rank sends to those 1, 2, 4, ... ranks further on and so receives from as many others.
 */
#ifndef MPIGRAFT_NEIGHBORS_H
#define MPIGRAFT_NEIGHBORS_H

#include "../common/check.h"
#include "collectives.h"
#include "message.h"
#include "run.h"

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
