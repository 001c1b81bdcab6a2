/* counts SEED STEPS FILE: makes STEPS steps of random calls, and writes what each rank called to
 * FILE.RANK, counted on its own: lines of `routine calls bytes class:messages:bytes ...`, where
 * class m is of calls whose blocks are of more than two classes. The steps of a seed are one
 * program, the same in every run. */
#include "tally.h"

static MPI_Comm between, grid; /* halves of the world; a line that is not periodic */
static MPI_Datatype large;     /* 2 GiB and more, of one place in memory */

/* ---- steps ---- */

static void exchange(void)
{
    static int all[MOST][MOST], outs[MOST], ins[MOST], places[MOST];
    for (int i = 0; i < ranks; i++)
        for (int j = 0; j < ranks; j++)
            all[i][j] = size_at_random();
    for (int i = 0; i < ranks; i++) {
        outs[i] = all[rank][i];
        ins[i] = all[i][rank];
        places[i] = i * LARGEST;
    }
    MPI_Alltoallv(out, outs, places, MPI_BYTE, in, ins, places, MPI_BYTE, MPI_COMM_WORLD);
    moved_blocks("Alltoallv", outs, ranks, outs, ranks);
    MPI_Allgatherv(out, all[0][rank], MPI_BYTE, in, all[0], places, MPI_BYTE, MPI_COMM_WORLD);
    moved_blocks("Allgatherv", all[0], ranks, all[0] + rank, 1);
    int root = (int)next((uint64_t)ranks);
    MPI_Gatherv(rank == root ? MPI_IN_PLACE : out, all[0][rank], MPI_BYTE, in, all[0], places,
                MPI_BYTE, root, MPI_COMM_WORLD);
    moved_blocks("Gatherv", rank == root ? all[0] : all[0] + rank, rank == root ? ranks : 1,
                 all[0] + rank, 1);
    MPI_Scatterv(out, all[0], places, MPI_BYTE, in, all[0][rank], MPI_BYTE, root, MPI_COMM_WORLD);
    if (rank == root)
        moved_blocks("Scatterv", all[0], ranks, all[0], ranks);
    else
        moved("Scatterv", (uint64_t)all[0][rank]);
}

static void start_requests(void)
{
    enum { PAIRS = 3 };
    MPI_Request requests[2 * PAIRS];
    int sizes[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        sizes[i] = size_at_random();
        MPI_Recv_init(in + i * LARGEST, LARGEST, MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[2 * i]);
        called("Recv_init");
        MPI_Ssend_init(out, sizes[i], MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
        called("Ssend_init");
    }
    for (int times = 0; times < 2; times++) {
        MPI_Startall(2 * PAIRS, requests);
        struct routine *routine = called("Startall");
        for (int i = 0; i < PAIRS; i++)
            moved_as(routine, class_of((uint64_t)sizes[i]), (uint64_t)sizes[i]);
        MPI_Waitall(2 * PAIRS, requests, MPI_STATUSES_IGNORE);
        called("Waitall");
    }
    for (int i = 0; i < 2 * PAIRS; i++) {
        MPI_Request_free(&requests[i]);
        called("Request_free");
    }
}

static void send_messages(void)
{
    MPI_Request requests[2];
    int size = size_at_random(), right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Irecv(in, LARGEST, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[0]);
    moved("Irecv", LARGEST);
    MPI_Isend(out, size, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
    moved("Isend", (uint64_t)size);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    called("Waitall");
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status);
    called("Mprobe");
    MPI_Mrecv(in, size, MPI_BYTE, &message, &status);
    called("Mrecv");
    for (int i = 0, flag; i < 8; i++) {
        MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        called("Iprobe");
    }
}

static void use_neighbors(void)
{
    int sizes[2] = {size_at_random(), size_at_random()}, size = size_at_random(), places[2] = {0, LARGEST};
    int near[2], counts[2], taken[2];
    MPI_Cart_shift(grid, 0, 1, &near[0], &near[1]);
    called("Cart_shift");
    MPI_Neighbor_alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, grid);
    struct routine *routine = called("Neighbor_alltoall");
    int given = 0;
    for (int i = 0; i < 2; i++) {
        if (near[i] != MPI_PROC_NULL) {
            moved_as(routine, class_of((uint64_t)size), (uint64_t)size);
            counts[given++] = sizes[i];
        }
        taken[i] = sizes[1 - i];
    }
    MPI_Neighbor_alltoallv(out, sizes, places, MPI_BYTE, in, taken, places, MPI_BYTE, grid);
    moved_blocks("Neighbor_alltoallv", counts, given, counts, given);
}

static void reduce(void)
{
    int counts[MOST], own, far, each = size_at_random(), sum = 0;
    MPI_Comm_size(between, &own);
    called("Comm_size");
    MPI_Comm_remote_size(between, &far);
    called("Comm_remote_size");
    for (int i = 0; i < own; i++) /* both groups have as many in all: own * far * each */
        sum += counts[i] = far * each;
    MPI_Reduce_scatter(out, in, counts, MPI_BYTE, MPI_BOR, between);
    moved("Reduce_scatter", (uint64_t)sum);
    MPI_Bcast(out, 1, large, 0, MPI_COMM_SELF);
    moved("Bcast", ((uint64_t)1 << 31) + 4096);
    MPI_Datatype type;
    MPI_Type_contiguous(each + 1, MPI_BYTE, &type);
    called("Type_contiguous");
    MPI_Type_commit(&type);
    called("Type_commit");
    MPI_Bcast(out, 2, type, (int)next((uint64_t)ranks), MPI_COMM_WORLD);
    moved("Bcast", 2 * ((uint64_t)each + 1));
    MPI_Type_free(&type);
    called("Type_free");
}

/* ---- */

static void make_objects(void)
{
    int none = 0;
    between = connect_halves(rank >= (ranks + 1) / 2);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &none, 0, &grid);
    called("Cart_create");
    MPI_Type_create_hvector((1 << 19) + 1, 4096, 0, MPI_BYTE, &large);
    called("Type_create_hvector");
    MPI_Type_commit(&large);
    called("Type_commit");
}

int main(int argc, char **argv)
{
    static void (*const steps[])(void) = {exchange, start_requests, send_messages, use_neighbors,
                                          reduce};
    start_count(&argc, &argv);
    make_objects();
    for (long i = 0; i < atol(argv[2]); i++)
        steps[next(sizeof steps / sizeof *steps)]();
    write_counts(argv[3]);
    return MPI_Finalize();
}
