/* Calls MPI in many ways, STEPS times: for records and replays. Everything but waiting is the same
 * in each run. */
#include <mpi.h>
#include <stdlib.h>

enum { ROOM = 100000 };
static int rank, size, up, down;
static double *out, *in;

static void messages(MPI_Datatype type, int step)
{
    MPI_Request four[4];
    MPI_Irecv(in, 3, type, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &four[0]);
    MPI_Irecv(in + 200, 100, MPI_DOUBLE, up, 8, MPI_COMM_WORLD, &four[1]);
    MPI_Isend(out, 3, type, up, 7, MPI_COMM_WORLD, &four[2]);
    MPI_Isend(out, 100, MPI_DOUBLE, down, 8, MPI_COMM_WORLD, &four[3]);
    if (step % 2)
        for (int i = 0, index; i < 4; i++)
            MPI_Waitany(4, four, &index, MPI_STATUS_IGNORE);
    else
        MPI_Waitall(4, four, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(out, 10, MPI_INT, up, 1, in, 20, MPI_INT, down, MPI_ANY_TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Message message;
    MPI_Request sent;
    MPI_Isend(out, 30, MPI_CHAR, up, 9, MPI_COMM_WORLD, &sent);
    MPI_Mprobe(down, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 30, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 30, MPI_CHAR, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &sent); /* as HPCC does */
    MPI_Cancel(&sent);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

/* What is sent as numbers arrives as pairs, each with room for a third. */
static void two_types(void)
{
    MPI_Datatype pair, spread, *types = calloc(2 * (size_t)size, sizeof(MPI_Datatype));
    int *counts = calloc(4 * (size_t)size, sizeof *counts);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_create_resized(pair, 0, 3 * sizeof(double), &spread);
    MPI_Type_commit(&spread);
    for (int i = 0; i < size; i++) {
        types[i] = MPI_DOUBLE, types[size + i] = spread;
        counts[i] = 2 * (counts[size + i] = (rank + i) % 3);
        counts[2 * size + i] = counts[3 * size + i] = 80 * i;
    }
    MPI_Alltoallw(out, counts, counts + 2 * size, types, in, counts + size, counts + 3 * size,
                  types + size, MPI_COMM_WORLD);
    MPI_Type_free(&pair), MPI_Type_free(&spread);
    free(types), free(counts);
}

static void collectives(MPI_Comm half)
{
    int *sent = calloc(4 * (size_t)size, sizeof *sent), *from = sent + size;
    int *taken = sent + 2 * size, *to = sent + 3 * size;
    for (int i = 0, a = 0, b = 0; i < size; i++) {
        taken[i] = sent[i] = (rank + i) % 3 * 10;
        from[i] = a, to[i] = b;
        a += sent[i], b += taken[i];
    }
    MPI_Alltoallv(out, sent, from, MPI_DOUBLE, in, taken, to, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allreduce(out, in, 50, MPI_FLOAT, MPI_SUM, half);
    MPI_Bcast(out, 1000, MPI_FLOAT, 0, MPI_COMM_WORLD);
    MPI_Reduce(rank ? out : MPI_IN_PLACE, out, 10, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(out, 5, MPI_INT, in, 5, MPI_INT, 0, half);
    MPI_Scatter(out, 5, MPI_INT, in, 5, MPI_INT, size - 1, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, 5, MPI_INT, MPI_COMM_WORLD);
    MPI_Scan(out, in, 4, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    two_types();
    free(sent);
}

static void persistent_ones(void)
{
    MPI_Request two[2];
    MPI_Send_init(out, 10, MPI_INT, up, 3, MPI_COMM_WORLD, &two[0]);
    MPI_Recv_init(in, 10, MPI_INT, down, 3, MPI_COMM_WORLD, &two[1]);
    for (int step = 0, done; step < 5; step++) {
        MPI_Startall(2, two);
        for (done = 0; !done;)
            MPI_Testall(2, two, &done, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&two[0]);
    MPI_Request_free(&two[1]);
}

static void windows(void)
{
    MPI_Win window;
    MPI_Win_create(out, 8000, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(in, 10, MPI_DOUBLE, up, 100, 10, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, up, 0, window);
    MPI_Get(in, 10, MPI_DOUBLE, up, 100, 10, MPI_DOUBLE, window);
    MPI_Win_unlock(up, window);
    MPI_Group all;
    MPI_Win_get_group(window, &all);
    MPI_Win_post(all, 0, window);
    MPI_Win_start(all, 0, window);
    MPI_Put(in, 10, MPI_DOUBLE, up, 200, 10, MPI_DOUBLE, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Group_free(&all);
    MPI_Win_free(&window);
}

static void communicators(void)
{
    MPI_Request request;
    MPI_Comm copy, grid;
    int dims[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(copy);
    MPI_Iallreduce(out, in, 5, MPI_INT, MPI_SUM, copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &copy);
    MPI_Bcast(out, 3, MPI_CXX_DOUBLE_COMPLEX, 0, copy);
    MPI_Bcast(out, 3, MPI_CXX_BOOL, 0, copy);
    MPI_Comm_free(&copy);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
    MPI_Neighbor_alltoall(out, 3, MPI_INT, in, 3, MPI_INT, grid);
    MPI_Comm_free(&grid);
}

/* Objects that are freed before what uses them is complete; the next ones get their numbers. */
static void freed_objects(void)
{
    MPI_Request two[2];
    MPI_Comm copy, half;
    MPI_Datatype column, row;
    MPI_Type_vector(10, 1, 7, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Irecv(in, 2, column, down, 4, MPI_COMM_WORLD, &two[0]);
    MPI_Isend(out, 2, column, up, 4, MPI_COMM_WORLD, &two[1]);
    MPI_Type_free(&column);
    MPI_Type_contiguous(3, MPI_DOUBLE, &row);
    MPI_Type_commit(&row);
    MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    MPI_Recv_init(in, 5, row, down, 5, MPI_COMM_WORLD, &two[0]);
    MPI_Send_init(out, 5, row, up, 5, MPI_COMM_WORLD, &two[1]);
    MPI_Type_free(&row);
    MPI_Type_vector(2, 1, 3, MPI_CHAR, &column);
    for (int step = 0; step < 3; step++) {
        MPI_Startall(2, two);
        MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&two[0]);
    MPI_Request_free(&two[1]);
    MPI_Type_free(&column);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Iallgather(out, 10, MPI_INT, in, 10, MPI_INT, copy, &two[0]);
    MPI_Comm_free(&copy);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Wait(&two[0], MPI_STATUS_IGNORE);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + 1) % size, down = (rank + size - 1) % size;
    out = calloc(ROOM, sizeof *out), in = calloc(ROOM, sizeof *in);
    MPI_Comm half, node;
    MPI_Datatype type;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Type_vector(4, 2, 5, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int step = 0; step < steps; step++) {
        messages(type, step);
        collectives(half);
    }
    persistent_ones();
    windows();
    communicators();
    freed_objects();
    MPI_Type_free(&type);
    MPI_Comm_free(&half);
    MPI_Comm_free(&node);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
