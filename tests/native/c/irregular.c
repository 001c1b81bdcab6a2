/* Calls MPI in the ways that timing decides, or that need exact arguments, STEPS times: for records
 * and replays. How often a request is tested is all that differs from run to run. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 65536, WORK = 11, RESULT = 12, MOST = 64 };
static int rank, size, up, down;
static int *out, *in;

/* Rank 0 gets an answer of each other one, in any order, and takes them one by one. */
static void answers(void)
{
    MPI_Request all[MOST];
    int count = 0;
    if (rank) {
        MPI_Send(out, rank, MPI_INT, 0, RESULT, MPI_COMM_WORLD);
        MPI_Recv(in, ROOM, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < size; i++)
        MPI_Irecv(in + 100 * i, 100, MPI_INT, i, RESULT, MPI_COMM_WORLD, &all[count++]);
    for (int i = 0, at; i < count; i++) {
        MPI_Status status;
        MPI_Waitany(count, all, &at, &status);
        MPI_Send(out, 3, MPI_INT, status.MPI_SOURCE, WORK, MPI_COMM_WORLD);
    }
}

/* The same with one receive of any source. */
static void anybody(void)
{
    for (int i = 1; i < size && !rank; i++) {
        MPI_Status status;
        int there = 0;
        while (!there)
            MPI_Iprobe(MPI_ANY_SOURCE, WORK, MPI_COMM_WORLD, &there, &status);
        MPI_Recv(in, ROOM, MPI_INT, status.MPI_SOURCE, WORK, MPI_COMM_WORLD, &status);
        MPI_Recv(in, ROOM, MPI_INT, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
    }
    if (rank) {
        MPI_Send(out, 10 * rank, MPI_INT, 0, WORK, MPI_COMM_WORLD);
        MPI_Send(out, 20, MPI_INT, 0, RESULT, MPI_COMM_WORLD);
    }
}

/* From both neighbors, as they come. */
static void some(int step)
{
    MPI_Request four[4];
    int places[4], done = 0, now, flag;
    MPI_Irecv(in, 500, MPI_INT, down, 1, MPI_COMM_WORLD, &four[0]);
    MPI_Irecv(in + 1000, 500, MPI_INT, up, 2, MPI_COMM_WORLD, &four[1]);
    MPI_Isend(out, 500, MPI_INT, up, 1, MPI_COMM_WORLD, &four[2]);
    MPI_Isend(out, 400, MPI_INT, down, 2, MPI_COMM_WORLD, &four[3]);
    while (done < 4) {
        if (step % 3 == 0)
            MPI_Waitsome(4, four, &now, places, MPI_STATUSES_IGNORE);
        else if (step % 3 == 1)
            MPI_Testsome(4, four, &now, places, MPI_STATUSES_IGNORE);
        else {
            MPI_Testany(4, four, places, &flag, MPI_STATUS_IGNORE);
            now = flag && places[0] != MPI_UNDEFINED;
        }
        done += now;
    }
}

static void each_tested(void)
{
    MPI_Request two[2];
    MPI_Irecv(in, 500, MPI_INT, down, 3, MPI_COMM_WORLD, &two[0]);
    MPI_Isend(out, 500, MPI_INT, up, 3, MPI_COMM_WORLD, &two[1]);
    for (int done = 0, flag; done < 2;)
        for (int i = 0; i < 2; i++) {
            int before = two[i] != MPI_REQUEST_NULL;
            MPI_Test(&two[i], &flag, MPI_STATUS_IGNORE);
            done += before && flag;
        }
}

static void uneven(void)
{
    int counts[MOST], places[MOST], bytes[MOST], all = 0;
    MPI_Datatype types[MOST];
    for (int i = 0; i < size; i++) {
        counts[i] = i % 3, places[i] = all;
        bytes[i] = (int)sizeof(int) * all, types[i] = MPI_INT;
        all += 5;
    }
    MPI_Gatherv(out, rank % 3, MPI_INT, in, counts, places, MPI_INT, size - 1, MPI_COMM_WORLD);
    MPI_Scatterv(out, counts, places, MPI_INT, in, rank % 3, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(out, rank % 3, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(out, in, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Exscan(out, in, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        counts[i] = (i + rank) % 4;
    MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Send(out, 9, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Sendrecv_replace(in, 9, MPI_INT, up, 5, down, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void epochs(void)
{
    MPI_Win window;
    MPI_Group world, left, right;
    int *memory, one = 1, before;
    MPI_Win_allocate(1024, 4, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &up, &right);
    MPI_Group_incl(world, 1, &down, &left);
    memset(memory, 0, 1024);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_post(left, 0, window);
    MPI_Win_start(right, 0, window);
    MPI_Put(out, 20, MPI_INT, up, 100, 20, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Win_lock_all(0, window);
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Accumulate(out, 4, MPI_INT, up, 8, 4, MPI_INT, MPI_SUM, window);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Group_free(&left), MPI_Group_free(&right), MPI_Group_free(&world);
}

static void graphs(void)
{
    MPI_Comm graph, half, between, both;
    int weights[2] = {1, 1}, near[2] = {down, up}, counts[2] = {4, 4}, places[2] = {0, 10};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, near, weights, 2, near, weights, MPI_INFO_NULL,
                                   0, &graph);
    MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, graph);
    MPI_Neighbor_allgather(out, 2, MPI_INT, in, 2, MPI_INT, graph);
    MPI_Comm_free(&graph);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 33, &between);
    MPI_Allreduce(out, in, 3, MPI_INT, MPI_SUM, between);
    MPI_Intercomm_merge(between, rank % 2, &both);
    MPI_Bcast(out, 7, MPI_INT, 0, both);
    MPI_Comm_free(&both), MPI_Comm_free(&between), MPI_Comm_free(&half);
    MPI_Comm_split(MPI_COMM_WORLD, rank ? 1 : MPI_UNDEFINED, 0, &half);
    if (half != MPI_COMM_NULL)
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
    const char *only = argc > 2 ? argv[2] : "aysteug";
    for (int step = 0; step < steps; step++)
        for (const char *part = only; *part; part++)
            switch (*part) {
            case 'a': answers(); break;
            case 'y': anybody(); break;
            case 's': some(step); break;
            case 't': each_tested(); break;
            case 'u': uneven(); break;
            case 'e': epochs(); break;
            case 'g': graphs(); break;
            }
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
