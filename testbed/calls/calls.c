/* Makes each call of a list of MPI's functions, a known number of times. calls.F90 makes the same
 * calls in the same order with each Fortran binding. Any even number of ranks; rank 0 prints "ok"
 * if what arrived was right. */
#include <mpi.h>
#include <stdio.h>

#define N 8
#define RANKS 64

static int rank, size, peer, wrong;
static int a[N], b[N], all[N * RANKS], more[N * RANKS];
static int counts[RANKS], starts[RANKS], bytes[RANKS];
static MPI_Datatype types[RANKS];

static void check(int is, int due) { wrong += is != due; }

static void messages(void)
{
    char space[N * sizeof(int) + MPI_BSEND_OVERHEAD];
    MPI_Status status;
    MPI_Request request;
    MPI_Message message;
    int count, flag, length;
    char *back;
    if (rank % 2 == 0) {
        MPI_Send(a, N, MPI_INT, peer, 1, MPI_COMM_WORLD);
        MPI_Ssend(a, N, MPI_INT, peer, 2, MPI_COMM_WORLD);
        MPI_Buffer_attach(space, sizeof space);
        MPI_Bsend(a, N, MPI_INT, peer, 3, MPI_COMM_WORLD);
        MPI_Buffer_detach(&back, &length);
        MPI_Send(a, 0, MPI_INT, peer, 4, MPI_COMM_WORLD);
        MPI_Send(a, N, MPI_INT, peer, 5, MPI_COMM_WORLD);
    } else {
        MPI_Recv(b, N, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(b, N, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        check(count, N);
        MPI_Probe(peer, 3, MPI_COMM_WORLD, &status);
        MPI_Recv(b, N, MPI_INT, peer, 3, MPI_COMM_WORLD, &status);
        MPI_Recv(b, 0, MPI_INT, peer, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mprobe(peer, 5, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(b, N, MPI_INT, &message, MPI_STATUS_IGNORE);
        check(b[0], peer);
    }
    MPI_Send(a, N, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(b, N, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(peer, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, N, MPI_INT, peer, 6, b, N, MPI_INT, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(b[0], peer);
    MPI_Sendrecv_replace(b, N, MPI_INT, peer, 7, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(b[0], rank);
    MPI_Irecv(b, N, MPI_INT, peer, 8, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(a, N, MPI_INT, peer, 8, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(b[0], peer);
}

static void requests(void)
{
    MPI_Request request[4];
    MPI_Status status[4];
    int i, flag, index, done, indices[4];
    for (i = 0; i < 2; i++) {
        MPI_Irecv(all + i * N, N, MPI_INT, peer, i, MPI_COMM_WORLD, &request[i]);
        MPI_Isend(a, N, MPI_INT, peer, i, MPI_COMM_WORLD, &request[2 + i]);
    }
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
    MPI_Irecv(b, N, MPI_INT, peer, 1, MPI_COMM_WORLD, &request[0]);
    MPI_Issend(a, N, MPI_INT, peer, 1, MPI_COMM_WORLD, &request[1]);
    MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, request, &index, &status[0]);
    MPI_Irecv(b, N, MPI_INT, peer, 2, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(a, N, MPI_INT, peer, 2, MPI_COMM_WORLD, &request[1]);
    MPI_Waitsome(2, request, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    MPI_Irecv(b, N, MPI_INT, peer, 3, MPI_COMM_WORLD, &request[0]);
    MPI_Isend(a, N, MPI_INT, peer, 3, MPI_COMM_WORLD, &request[1]);
    MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE);
    MPI_Testany(2, request, &index, &flag, MPI_STATUS_IGNORE);
    MPI_Testsome(2, request, &done, indices, MPI_STATUSES_IGNORE);
    MPI_Testall(2, request, &flag, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, request, status);
    check(b[0], peer);
    MPI_Recv_init(b, N, MPI_INT, peer, 4, MPI_COMM_WORLD, &request[0]);
    MPI_Send_init(a, N, MPI_INT, peer, 4, MPI_COMM_WORLD, &request[1]);
    for (i = 0; i < 3; i++) {
        MPI_Startall(2, request);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPI_Start(&request[0]);
    MPI_Start(&request[1]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request[1], &status[0]);
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
}

static void collectives(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(b, N, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(a, N, MPI_INT, all, N, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gatherv(a, counts[rank], MPI_INT, all, counts, starts, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, N, MPI_INT, b, N, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(all, counts, starts, MPI_INT, b, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgather(a, N, MPI_INT, all, N, MPI_INT, MPI_COMM_WORLD);
    check(all[N * peer], peer);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, N, MPI_INT, MPI_COMM_WORLD);
    check(all[N * peer], peer);
    MPI_Allgatherv(a, counts[rank], MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(more, N, MPI_INT, all, N, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, N, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv(more, counts, starts, MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallw(more, counts, bytes, types, all, counts, bytes, types, MPI_COMM_WORLD);
    MPI_Reduce(a, b, N, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(b[0], size * (size - 1) / 2);
    MPI_Allreduce(MPI_IN_PLACE, b, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(b[0], size * (size - 1) / 2);
    MPI_Reduce_scatter(all, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(all, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_local(a, b, N, MPI_INT, MPI_SUM);
}

static void nonblocking_collectives(void)
{
    MPI_Request r;
#define DONE MPI_Wait(&r, MPI_STATUS_IGNORE)
    MPI_Ibarrier(MPI_COMM_WORLD, &r), DONE;
    MPI_Ibcast(b, N, MPI_INT, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Igather(a, N, MPI_INT, all, N, MPI_INT, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Igatherv(a, counts[rank], MPI_INT, all, counts, starts, MPI_INT, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Iscatter(all, N, MPI_INT, b, N, MPI_INT, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Iscatterv(all, counts, starts, MPI_INT, b, counts[rank], MPI_INT, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Iallgather(a, N, MPI_INT, all, N, MPI_INT, MPI_COMM_WORLD, &r), DONE;
    check(all[N * peer], peer);
    MPI_Iallgatherv(a, counts[rank], MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD, &r), DONE;
    MPI_Ialltoall(more, N, MPI_INT, all, N, MPI_INT, MPI_COMM_WORLD, &r), DONE;
    MPI_Ialltoallv(more, counts, starts, MPI_INT, all, counts, starts, MPI_INT, MPI_COMM_WORLD, &r), DONE;
    MPI_Ialltoallw(more, counts, bytes, types, all, counts, bytes, types, MPI_COMM_WORLD, &r), DONE;
    MPI_Ireduce(a, b, N, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, &r), DONE;
    MPI_Iallreduce(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), DONE;
    check(b[0], size * (size - 1) / 2);
    MPI_Ireduce_scatter(all, b, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), DONE;
    MPI_Ireduce_scatter_block(all, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), DONE;
    MPI_Iscan(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), DONE;
    MPI_Iexscan(a, b, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r), DONE;
}

static void one_sided(void)
{
    MPI_Win window;
    MPI_Group world, other;
    MPI_Request request;
    MPI_Aint zero = 0;
    int one = 1, old = 0, i;
    MPI_Win_create(all, sizeof all, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(a, N, MPI_INT, peer, zero, N, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(all[0], peer);
    MPI_Get(b, N, MPI_INT, peer, zero, N, MPI_INT, window);
    MPI_Win_fence(0, window);
    check(b[0], rank);
    MPI_Accumulate(a, N, MPI_INT, peer, zero, N, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    for (i = 0; i < 2; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
        MPI_Fetch_and_op(&one, &old, MPI_INT, peer, zero, MPI_SUM, window);
        MPI_Win_flush(peer, window);
        MPI_Compare_and_swap(&one, &one, &old, MPI_INT, peer, zero, window);
        MPI_Win_unlock(peer, window);
    }
    MPI_Win_lock_all(0, window);
    MPI_Get_accumulate(a, N, MPI_INT, b, N, MPI_INT, peer, zero, N, MPI_INT, MPI_SUM, window);
    MPI_Rput(a, N, MPI_INT, peer, zero, N, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(b, N, MPI_INT, peer, zero, N, MPI_INT, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush_local(peer, window);
    MPI_Win_flush_all(window);
    MPI_Win_sync(window);
    MPI_Win_unlock_all(window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &peer, &other);
    MPI_Win_post(other, 0, window);
    MPI_Win_start(other, 0, window);
    MPI_Put(a, N, MPI_INT, peer, zero, N, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    check(all[0], peer);
    MPI_Win_free(&window);
    MPI_Group_free(&other);
    MPI_Group_free(&world);
}

static void communicators(void)
{
    MPI_Comm twin, half, part, grid, line;
    MPI_Group world, first;
    MPI_Request request;
    int sides[2] = {0, 0}, periods[2] = {1, 1}, place[2], keep[2] = {0, 1}, from, to, i, r;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_free(&twin);
    MPI_Comm_idup(MPI_COMM_WORLD, &twin, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_split(twin, rank % 2, rank, &half);
    MPI_Allreduce(a, b, N, MPI_INT, MPI_SUM, half);
    MPI_Comm_size(half, &i);
    check(i, size / 2);
    MPI_Comm_split_type(twin, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_free(&part);
    MPI_Comm_group(twin, &world);
    MPI_Group_incl(world, 1, &keep[0], &first);
    MPI_Comm_create(twin, first, &part);
    if (part != MPI_COMM_NULL) {
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&first);
    MPI_Group_free(&world);
    MPI_Dims_create(size, 2, sides);
    MPI_Cart_create(twin, 2, sides, periods, 0, &grid);
    MPI_Comm_rank(grid, &r);
    MPI_Cart_coords(grid, r, 2, place);
    MPI_Cart_rank(grid, place, &i);
    check(i, r);
    MPI_Cart_shift(grid, 0, 1, &from, &to);
    MPI_Sendrecv(a, N, MPI_INT, to, 1, b, N, MPI_INT, from, 1, grid, MPI_STATUS_IGNORE);
    check(b[0], from);
    MPI_Neighbor_allgather(a, N, MPI_INT, all, N, MPI_INT, grid);
    MPI_Neighbor_alltoall(more, N, MPI_INT, all, N, MPI_INT, grid);
    MPI_Cart_sub(grid, keep, &line);
    MPI_Barrier(line);
    MPI_Comm_free(&line);
    MPI_Comm_free(&grid);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
}

static void datatypes(void)
{
    MPI_Datatype row, column, some, field, wide, fixed;
    MPI_Aint place[1], extent = 3 * sizeof(int);
    int lengths[2] = {1, 2}, at[2] = {0, 3}, whole[2] = {4, 2}, part[2] = {2, 1}, from[2] = {1, 0};
    int position = 0, length;
    char packed[256];
    MPI_Type_contiguous(N, MPI_INT, &row);
    MPI_Type_commit(&row);
    MPI_Type_vector(4, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Type_indexed(2, lengths, at, MPI_INT, &some);
    MPI_Type_commit(&some);
    MPI_Type_create_subarray(2, whole, part, from, MPI_ORDER_C, MPI_INT, &field);
    MPI_Type_commit(&field);
    MPI_Type_create_resized(MPI_INT, 0, extent, &wide);
    MPI_Type_commit(&wide);
    MPI_Type_size(some, &length);
    check(length, 3 * (int)sizeof(int));
    MPI_Sendrecv(a, 1, row, peer, 1, b, N, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(b[N - 1], peer);
    MPI_Sendrecv(a, 1, column, peer, 2, b, 1, column, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 1, some, peer, 3, b, 1, some, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 1, field, peer, 4, b, 1, field, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 2, wide, peer, 5, b, 2, wide, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Get_address(b, &place[0]);
    lengths[0] = N;
    MPI_Type_create_hindexed(1, lengths, place, MPI_INT, &fixed);
    MPI_Type_commit(&fixed);
    MPI_Sendrecv(a, N, MPI_INT, peer, 6, MPI_BOTTOM, 1, fixed, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(b[0], peer);
    MPI_Bcast(MPI_BOTTOM, 1, fixed, 0, MPI_COMM_WORLD);
    MPI_Pack_size(N, MPI_INT, MPI_COMM_WORLD, &length);
    MPI_Pack(a, N, MPI_INT, packed, sizeof packed, &position, MPI_COMM_WORLD);
    MPI_Sendrecv_replace(packed, position, MPI_PACKED, peer, 7, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    length = position, position = 0;
    MPI_Unpack(packed, length, &position, b, N, MPI_INT, MPI_COMM_WORLD);
    check(b[0], peer);
    MPI_Type_free(&fixed);
    MPI_Type_free(&wide);
    MPI_Type_free(&field);
    MPI_Type_free(&some);
    MPI_Type_free(&column);
    MPI_Type_free(&row);
}

int main(int argc, char **argv)
{
    int i;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = rank ^ 1;
    for (i = 0; i < N; i++)
        a[i] = rank;
    for (i = 0; i < size; i++) {
        counts[i] = 2;
        starts[i] = N * i;
        bytes[i] = N * i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    messages();
    requests();
    collectives();
    nonblocking_collectives();
    one_sided();
    communicators();
    datatypes();
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        puts(wrong ? "wrong" : "ok");
    MPI_Finalize();
    return wrong != 0;
}
