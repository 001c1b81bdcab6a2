/* varied SEED STEPS FILE: as counts, of calls with arguments that mean nothing, which need be no
 * handles: MPI_DATATYPE_NULL stands for them. */
#include <stdbool.h>

#include "tally.h"

#define WORLD MPI_COMM_WORLD

static MPI_Comm between, torus, graph, web;
static MPI_Win window;
static int side, far; /* which half this is, and ranks of the other one */
static int all[MOST][MOST], outs[MOST], ins[MOST], places[MOST];

/* A call that gives `many` blocks of `bytes`. */
static void moved_to(const char *name, uint64_t bytes, int many)
{
    struct routine *routine = called(name);
    for (int i = 0; i < many; i++)
        moved_as(routine, class_of(bytes), bytes);
}

static void wait_for(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
    called("Wait");
}

static void draw_blocks(void)
{
    for (int i = 0; i < MOST; i++)
        for (int j = 0; j < MOST; j++)
            all[i][j] = size_at_random();
    for (int i = 0; i < MOST; i++) {
        outs[i] = all[rank][i];
        ins[i] = all[i][rank];
        places[i] = i * LARGEST;
    }
}

/* A new datatype; `bytes`: of data in it. */
static MPI_Datatype make_type(int *bytes)
{
    MPI_Datatype type, kinds[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    int lengths[3], where[3] = {40, 0, 90}, sizes[2] = {6, 7}, parts[2] = {2, 3}, from[2] = {1, 2};
    MPI_Aint offsets[3] = {0, 64, 200};
    for (int i = 0; i < 3; i++)
        lengths[i] = (int)next(9);
    switch (next(5)) {
    case 0:
        MPI_Type_vector(3, 2, 5, MPI_INT, &type);
        called("Type_vector");
        *bytes = 24;
        break;
    case 1:
        MPI_Type_indexed(3, lengths, where, MPI_SHORT, &type);
        called("Type_indexed");
        *bytes = 2 * (lengths[0] + lengths[1] + lengths[2]);
        break;
    case 2:
        MPI_Type_create_struct(3, lengths, offsets, kinds, &type);
        called("Type_create_struct");
        *bytes = 4 * lengths[0] + 8 * lengths[1] + lengths[2];
        break;
    case 3:
        MPI_Type_create_subarray(2, sizes, parts, from, MPI_ORDER_FORTRAN, MPI_FLOAT, &type);
        called("Type_create_subarray");
        *bytes = 24;
        break;
    default:
        MPI_Type_dup(MPI_DOUBLE_INT, &type);
        called("Type_dup");
        *bytes = 12;
    }
    MPI_Type_commit(&type);
    called("Type_commit");
    return type;
}

static void free_type(MPI_Datatype *type)
{
    MPI_Type_free(type);
    called("Type_free");
}

/* ---- steps ---- */

static void exchange(void)
{
    MPI_Request request;
    draw_blocks();
    int root = (int)next((uint64_t)ranks), drawn = (int)next(2), leads = rank == root;
    bool there = leads && drawn;
    int *counts = leads ? all[0] : NULL, *where = leads ? places : NULL;
    int mine = there ? 0 : all[0][rank], each = all[1][1];
    MPI_Datatype own_type = there ? MPI_DATATYPE_NULL : MPI_BYTE;
    MPI_Datatype root_type = leads ? MPI_BYTE : MPI_DATATYPE_NULL;
    MPI_Ialltoallv(out, outs, places, MPI_BYTE, in, ins, places, MPI_BYTE, WORLD, &request);
    moved_blocks("Ialltoallv", outs, ranks, outs, ranks);
    wait_for(&request);
    for (int i = 0; i < rank; i++)
        outs[i] = all[i][rank]; /* in place each pair has one size */
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, outs, places, MPI_BYTE, WORLD);
    moved_blocks("Alltoallv", outs, ranks, outs, ranks);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, all[1], places, MPI_BYTE, WORLD,
                    &request);
    moved_blocks("Iallgatherv", all[1], ranks, all[1] + rank, 1);
    wait_for(&request);
    MPI_Igatherv(there ? MPI_IN_PLACE : out, mine, own_type, in, counts, where, root_type, root,
                 WORLD, &request);
    moved_blocks("Igatherv", leads ? all[0] : all[0] + rank, leads ? ranks : 1, all[0] + rank, 1);
    wait_for(&request);
    MPI_Iscatterv(out, counts, where, root_type, there ? MPI_IN_PLACE : in, mine, own_type, root,
                  WORLD, &request);
    if (leads)
        moved_blocks("Iscatterv", all[0], ranks, all[0], ranks);
    else
        moved("Iscatterv", (uint64_t)all[0][rank]);
    wait_for(&request);
    MPI_Gather(there ? MPI_IN_PLACE : out, each, own_type, in, each, root_type, root, WORLD);
    moved("Gather", (uint64_t)each);
    MPI_Scatter(out, each, root_type, there ? MPI_IN_PLACE : in, each, own_type, root, WORLD);
    moved_to("Scatter", (uint64_t)each, leads ? ranks : 1);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, in, each, MPI_BYTE, MPI_BOR, WORLD);
    moved("Reduce_scatter_block", (uint64_t)(each * ranks));
}

static void exchange_typed(void)
{
    int counts[MOST], taken[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
    draw_blocks();
    for (int i = 0; i < ranks; i++) {
        bool wide = (rank + i) % 2;
        counts[i] = outs[i] / 4;
        taken[i] = ins[i] / 4;
        bytes[i] = counts[i] * (wide ? 4 : 2);
        types[i] = wide ? MPI_INT : MPI_SHORT;
    }
    MPI_Alltoallw(out, counts, places, types, in, taken, places, types, WORLD);
    moved_blocks("Alltoallw", bytes, ranks, bytes, ranks);
}

/* A call that sends `bytes`, or nothing to MPI_PROC_NULL. */
static void sent(const char *name, int to, uint64_t bytes)
{
    if (to == MPI_PROC_NULL)
        called(name);
    else
        moved(name, bytes);
}

static void send_messages(void)
{
    bool none = !next(8);
    int right = none ? MPI_PROC_NULL : (rank + 1) % ranks, count = 1 + (int)next(20), bytes;
    int left = none ? MPI_PROC_NULL : (rank + ranks - 1) % ranks, times = (int)next(3);
    MPI_Datatype type = make_type(&bytes);
    uint64_t all_bytes = (uint64_t)(count * bytes);
    MPI_Request requests[2];
    MPI_Sendrecv(out, count, type, right, 3, in, count, type, left, MPI_ANY_TAG, WORLD,
                 MPI_STATUS_IGNORE);
    sent("Sendrecv", right, all_bytes);
    MPI_Sendrecv_replace(out, count, type, right, 3, left, 3, WORLD, MPI_STATUS_IGNORE);
    sent("Sendrecv_replace", right, all_bytes);
    MPI_Isendrecv(out, count, type, right, 8, in, count, type, left, 8, WORLD, &requests[0]);
    sent("Isendrecv", right, all_bytes);
    wait_for(&requests[0]);
    MPI_Issend(out, count, type, right, 6, WORLD, &requests[0]);
    sent("Issend", right, all_bytes);
    MPI_Message message;
    MPI_Mprobe(left, 6, WORLD, &message, MPI_STATUS_IGNORE);
    called("Mprobe");
    MPI_Imrecv(in, count, type, &message, &requests[1]);
    sent("Imrecv", left, all_bytes);
    wait_for(&requests[1]);
    wait_for(&requests[0]);
    MPI_Send_init(out, count, type, right, 9, WORLD, &requests[0]);
    called("Send_init");
    MPI_Recv_init(in, count, type, left, 9, WORLD, &requests[1]);
    called("Recv_init");
    free_type(&type);
    type = make_type(&bytes); /* which may have the handle of the other one */
    for (int i = 0; i < times; i++) {
        MPI_Start(&requests[1]);
        called("Start");
        MPI_Start(&requests[0]);
        sent("Start", right, all_bytes);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        called("Waitall");
    }
    for (int i = 0; i < 2; i++) {
        MPI_Request_free(&requests[i]);
        called("Request_free");
    }
    free_type(&type);
}

/* The root is in one half, and its companions take no part. */
static void reach_across(void)
{
    int giver = (int)next(2), first = (ranks + 1) / 2, count = (int)next(1 << 10);
    int lead = (int)next((uint64_t)(giver ? ranks - first : first));
    int mine = rank - (side ? first : 0);
    int root = side != giver ? lead : mine == lead ? MPI_ROOT : MPI_PROC_NULL;
    bool gives = side != giver, takes = root == MPI_ROOT;
    uint64_t bytes = 4 * (uint64_t)count;
    draw_blocks();
    MPI_Bcast(out, count, MPI_INT, root, between);
    sent("Bcast", root, bytes);
    MPI_Reduce(out, in, count, MPI_INT, MPI_BOR, root, between);
    sent("Reduce", root, bytes);
    MPI_Gather(out, count, gives ? MPI_INT : MPI_DATATYPE_NULL, in, count,
               takes ? MPI_INT : MPI_DATATYPE_NULL, root, between);
    sent("Gather", gives ? root : MPI_PROC_NULL, bytes);
    MPI_Scatterv(out, all[0], places, takes ? MPI_BYTE : MPI_DATATYPE_NULL, in, all[0][mine],
                 gives ? MPI_BYTE : MPI_DATATYPE_NULL, root, between);
    if (takes)
        moved_blocks("Scatterv", all[0], far, all[0], far);
    else
        sent("Scatterv", root, (uint64_t)all[0][mine]);
    for (int i = 0; i < far; i++)
        outs[i] = side ? all[i][mine] : all[mine][i];
    MPI_Alltoallv(out, outs, places, MPI_BYTE, in, outs, places, MPI_BYTE, between);
    moved_blocks("Alltoallv", outs, far, outs, far);
    MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, between);
    moved("Allgather", bytes);
}

static void use_window(void)
{
    int target = next(6) ? (int)next((uint64_t)ranks) : MPI_PROC_NULL;
    int count = (int)next(200), one = 1, old;
    uint64_t bytes = 4 * (uint64_t)count;
    MPI_Request request;
    MPI_Win_lock_all(0, window);
    called("Win_lock_all");
    MPI_Accumulate(out, count, MPI_INT, target, 0, count, MPI_INT, MPI_SUM, window);
    sent("Accumulate", target, bytes);
    MPI_Get_accumulate(out, count, MPI_INT, in, count, MPI_INT, target, 0, count, MPI_INT, MPI_SUM,
                       window);
    sent("Get_accumulate", target, bytes);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, in, count, MPI_INT, target, 0, count, MPI_INT,
                       MPI_NO_OP, window);
    sent("Get_accumulate", target, bytes);
    MPI_Fetch_and_op(NULL, &old, MPI_INT, target, 0, MPI_NO_OP, window);
    sent("Fetch_and_op", target, 4);
    MPI_Compare_and_swap(&one, &one, &old, MPI_INT, target, 0, window);
    sent("Compare_and_swap", target, 4);
    MPI_Rget(in, count, MPI_INT, target, 0, count, MPI_INT, window, &request);
    sent("Rget", target, bytes);
    wait_for(&request);
    MPI_Win_unlock_all(window);
    called("Win_unlock_all");
}

/* Neighbors that are this rank, the same one twice, and as many as there are ranks. */
static void use_neighbors(void)
{
    MPI_Comm comms[3] = {torus, graph, web};
    int near[3] = {4, rank ? 1 : ranks, 2}, counts[MOST];
    int place = (int)next(3), bytes = size_at_random();
    MPI_Request request;
    for (int i = 0; i < MOST; i++) {
        counts[i] = bytes;
        places[i] = i * LARGEST;
    }
    MPI_Neighbor_allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comms[place]);
    moved_to("Neighbor_allgather", (uint64_t)bytes, near[place]);
    MPI_Ineighbor_alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE,
                            comms[place], &request);
    moved_blocks("Ineighbor_alltoallv", counts, near[place], counts, near[place]);
    wait_for(&request);
}

static void split_world(void)
{
    MPI_Comm comm;
    int color = next(3) ? rank % 2 : rank ? 1 : MPI_UNDEFINED, each = (int)next(100), size;
    MPI_Comm_split(WORLD, color, -rank, &comm);
    called("Comm_split");
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_size(comm, &size);
    called("Comm_size");
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, each, MPI_BYTE, comm);
    moved_to("Alltoall", (uint64_t)each, size);
    MPI_Comm_free(&comm);
    called("Comm_free");
}

/* ---- */

static void make_objects(void)
{
    int shape[2] = {1, ranks}, periods[2] = {1, 1}, index[MOST], edges[2 * MOST], many = 0;
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    int from[2] = {left, left}, to[2] = {right, right};
    void *memory;
    side = rank >= (ranks + 1) / 2;
    between = connect_halves(side);
    MPI_Comm_remote_size(between, &far);
    called("Comm_remote_size");
    MPI_Cart_create(WORLD, 2, shape, periods, 0, &torus);
    called("Cart_create");
    for (int i = 0; i < ranks; i++) {
        for (int j = 0; j < (i ? 1 : ranks); j++)
            edges[many++] = j;
        index[i] = many;
    }
    MPI_Graph_create(WORLD, ranks, index, edges, 0, &graph);
    called("Graph_create");
    MPI_Dist_graph_create_adjacent(WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &web);
    called("Dist_graph_create_adjacent");
    MPI_Win_allocate(1 << 12, 1, MPI_INFO_NULL, WORLD, &memory, &window);
    called("Win_allocate");
}

int main(int argc, char **argv)
{
    static void (*const steps[])(void) = {exchange, exchange_typed, send_messages, reach_across,
                                          use_window, use_neighbors, split_world};
    start_count(&argc, &argv);
    make_objects();
    for (long i = 0; i < atol(argv[2]); i++)
        steps[next(sizeof steps / sizeof *steps)]();
    MPI_Win_free(&window);
    called("Win_free");
    write_counts(argv[3]);
    return MPI_Finalize();
}
