/* The table of benchmarks: which messages, one iteration, what it measures. */
#ifndef MPIGRAFT_BENCHMARKS_H
#define MPIGRAFT_BENCHMARKS_H

#include "check.h"
#include "message.h"
#include "run.h"

enum { TAG = 1, ACKNOWLEDGE = 2 };

#define SEND_BUFFER run->send.wire, run->message.count, run->message.type
#define RECV_BUFFER run->recv.wire, run->message.count, run->message.type

static inline char *sent(const struct run *run, int slot)
{
    return run->send.wire + run->send.slot[slot].wire;
}

static inline char *received(const struct run *run, int slot)
{
    return run->recv.wire + run->recv.slot[slot].wire;
}

/* ---- point to point ---- */

static void one_each_way(struct run *run)
{
    add_slot(run, &run->send, run->rank, run->peer, run->message.bytes);
    add_slot(run, &run->recv, run->peer, run->rank, run->message.bytes);
}

static void ping_pong(struct run *run, long i)
{
    (void)i;
    if (run->leads) {
        pack(run);
        OK(MPI_Send(SEND_BUFFER, run->peer, TAG, run->comm));
        OK(MPI_Recv(RECV_BUFFER, run->peer, TAG, run->comm, MPI_STATUS_IGNORE));
        unpack(run);
    } else {
        OK(MPI_Recv(RECV_BUFFER, run->peer, TAG, run->comm, MPI_STATUS_IGNORE));
        unpack(run);
        pack(run);
        OK(MPI_Send(SEND_BUFFER, run->peer, TAG, run->comm));
    }
}

/* Every message of a window is received in a place of its own, as MPI demands; OSU receives all
 * in one. One message is sent again and again, which MPI allows; packed by hand, each needs its
 * own packed copy. */
static void window_of_sends(struct run *run)
{
    int copies = run->message.datatype == DATATYPE_PACKED ? run->window : 1;
    for (int w = 0; w < copies; w++)
        add_slot(run, &run->send, run->rank, run->peer, run->message.bytes);
}

static void window_of_receives(struct run *run)
{
    bool one_place = like_osu(run) && !has(run, PUTS | GETS);
    for (int w = 0; w < (one_place ? 1 : run->window); w++)
        add_slot(run, &run->recv, run->peer, run->rank, run->message.bytes);
}

static void window_one_way(struct run *run)
{
    if (run->leads)
        window_of_sends(run);
    else
        window_of_receives(run);
}

static void window_both_ways(struct run *run)
{
    window_of_sends(run);
    window_of_receives(run);
}

static void start_sends(struct run *run, MPI_Request *requests)
{
    for (int w = 0; w < run->window; w++) {
        pack_slot(run, w % run->send.slots);
        OK(MPI_Isend(sent(run, w % run->send.slots), run->message.count, run->message.type,
                     run->peer, TAG, run->comm, &requests[w]));
    }
}

static void start_receives(struct run *run, MPI_Request *requests)
{
    for (int w = 0; w < run->window; w++)
        OK(MPI_Irecv(received(run, w % run->recv.slots), run->message.count, run->message.type, run->peer, TAG,
                     run->comm, &requests[w]));
}

/* A window counts when the receiver has all of it, so it answers. */
static void stream(struct run *run, long i)
{
    char answer = (char)i;
    if (run->leads) {
        start_sends(run, run->requests);
        OK(MPI_Waitall(run->window, run->requests, MPI_STATUSES_IGNORE));
        OK(MPI_Recv(&answer, 1, MPI_CHAR, run->peer, ACKNOWLEDGE, run->comm, MPI_STATUS_IGNORE));
    } else {
        start_receives(run, run->requests);
        OK(MPI_Waitall(run->window, run->requests, MPI_STATUSES_IGNORE));
        unpack(run);
        OK(MPI_Send(&answer, 1, MPI_CHAR, run->peer, ACKNOWLEDGE, run->comm));
    }
}

static void stream_both_ways(struct run *run, long i)
{
    (void)i;
    start_receives(run, run->requests);
    start_sends(run, run->requests + run->window);
    OK(MPI_Waitall(2 * run->window, run->requests, MPI_STATUSES_IGNORE));
    unpack(run);
}

/* ---- collectives ----
 * Rooted ones turn the root from iteration to iteration, as Intel's benchmarks do: with one
 * root, ranks that only send would run ahead and the batch would measure a pipeline. OSU keeps
 * rank 0 and has a barrier after each. */

static int root_of(const struct run *run, long i)
{
    return like_osu(run) ? 0 : (int)(i % run->size);
}

/* Bytes that `rank` gives to, or gets from, a root. */
static size_t share(const struct run *run, int rank)
{
    size_t n = (size_t)run->size, k = (size_t)rank;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return run->message.bytes * 2 * (k + 1) / (n + 1); /* a ramp, mean 1 */
    case COUNTS_SPARSE: return k % 2 ? 0 : run->message.bytes;
    default: return run->message.bytes;
    }
}

/* Bytes from one rank to another in alltoallv: skewed is a ramp that differs from row to row,
 * sparse are the neighbours in a ring. */
static size_t share_between(const struct run *run, int from, int to)
{
    int apart = (to - from + run->size) % run->size;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return share(run, (from + to) % run->size);
    case COUNTS_SPARSE: return apart == 1 || apart == run->size - 1 ? run->message.bytes : 0;
    default: return run->message.bytes;
    }
}

static void nothing(struct run *run)
{
    (void)run;
}

static void barrier(struct run *run, long i)
{
    (void)i;
    OK(MPI_Barrier(run->comm));
}

static void from_root(struct run *run)
{
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

static void bcast(struct run *run, long i)
{
    if (run->message.datatype == DATATYPE_PACKED && run->rank == root_of(run, i))
        pack_bytes(run->recv.wire, run->recv.data, run->message.bytes);
    OK(MPI_Bcast(RECV_BUFFER, root_of(run, i), run->comm));
    if (run->rank != root_of(run, i))
        unpack(run);
}

static void sum(struct run *run)
{
    add_slot(run, &run->send, 0, -1, run->message.bytes);
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

static void allreduce(struct run *run, long i)
{
    (void)i;
    OK(MPI_Allreduce(run->send.wire, run->recv.wire, run->message.count, run->message.type,
                     MPI_SUM, run->comm));
}

static void reduce(struct run *run, long i)
{
    OK(MPI_Reduce(run->send.wire, run->recv.wire, run->message.count, run->message.type, MPI_SUM,
                  root_of(run, i), run->comm));
}

static void one_to_root(struct run *run)
{
    add_slot(run, &run->send, run->rank, -1, share(run, run->rank));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, -1, share(run, p));
}

static void one_from_root(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, share(run, p));
    add_slot(run, &run->recv, -1, run->rank, share(run, run->rank));
}

static void one_between_all(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, run->rank, p, share_between(run, run->rank, p));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, run->rank, share_between(run, p, run->rank));
}

static void gather(struct run *run, long i)
{
    pack(run);
    OK(MPI_Gather(SEND_BUFFER, RECV_BUFFER, root_of(run, i), run->comm));
    if (run->rank == root_of(run, i))
        unpack(run);
}

static void gatherv(struct run *run, long i)
{
    pack(run);
    OK(MPI_Gatherv(run->send.wire, run->send_counts[0], run->message.type, run->recv.wire,
                   run->recv_counts, run->recv_places, run->message.type, root_of(run, i),
                   run->comm));
    if (run->rank == root_of(run, i))
        unpack(run);
}

static void scatter(struct run *run, long i)
{
    if (run->rank == root_of(run, i))
        pack(run);
    OK(MPI_Scatter(SEND_BUFFER, RECV_BUFFER, root_of(run, i), run->comm));
    unpack(run);
}

static void scatterv(struct run *run, long i)
{
    if (run->rank == root_of(run, i))
        pack(run);
    OK(MPI_Scatterv(run->send.wire, run->send_counts, run->send_places, run->message.type,
                    run->recv.wire, run->recv_counts[0], run->message.type, root_of(run, i),
                    run->comm));
    unpack(run);
}

static void allgather(struct run *run, long i)
{
    (void)i;
    pack(run);
    OK(MPI_Allgather(SEND_BUFFER, RECV_BUFFER, run->comm));
    unpack(run);
}

static void allgatherv(struct run *run, long i)
{
    (void)i;
    pack(run);
    OK(MPI_Allgatherv(run->send.wire, run->send_counts[0], run->message.type, run->recv.wire,
                      run->recv_counts, run->recv_places, run->message.type, run->comm));
    unpack(run);
}

static void alltoall(struct run *run, long i)
{
    (void)i;
    pack(run);
    OK(MPI_Alltoall(SEND_BUFFER, RECV_BUFFER, run->comm));
    unpack(run);
}

static void alltoallv(struct run *run, long i)
{
    (void)i;
    pack(run);
    OK(MPI_Alltoallv(run->send.wire, run->send_counts, run->send_places, run->message.type,
                     run->recv.wire, run->recv_counts, run->recv_places, run->message.type,
                     run->comm));
    unpack(run);
}

/* ---- one-sided ---- */

/* The leader acts; the follower exposes memory and waits. */
static void exposed_window(struct run *run)
{
    if (run->leads == has(run, PUTS))
        window_of_sends(run);
    else
        window_of_receives(run);
}

static MPI_Aint place_of(const struct run *run, int w)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    return (MPI_Aint)((size_t)w * (packed ? run->message.bytes : run->message.extent));
}

static void put(struct run *run, long i)
{
    (void)i;
    if (!run->leads)
        return;
    for (int w = 0; w < run->window; w++) {
        pack_slot(run, w % run->send.slots);
        OK(MPI_Put(sent(run, w % run->send.slots), run->message.count, run->message.type,
                   run->peer, place_of(run, w), run->message.count, run->message.type, run->win));
    }
    OK(MPI_Win_flush(run->peer, run->win));
}

static void get(struct run *run, long i)
{
    (void)i;
    if (!run->leads)
        return;
    for (int w = 0; w < run->window; w++)
        OK(MPI_Get(received(run, w), run->message.count, run->message.type, run->peer,
                   place_of(run, run->message.datatype == DATATYPE_PACKED ? w : 0),
                   run->message.count, run->message.type, run->win));
    OK(MPI_Win_flush(run->peer, run->win));
    unpack(run);
}

/* ---- the table ---- */

static const struct benchmark BENCHMARKS[] = {
    {"latency", "MPI Latency", PAIR, LATENCY, HALVES, one_each_way, ping_pong},
    {"bw", "MPI Bandwidth", PAIR, BANDWIDTH, WINDOWED, window_one_way, stream},
    {"bibw", "MPI Bi-Directional Bandwidth", PAIR, BANDWIDTH, WINDOWED | BOTH_WAYS,
     window_both_ways, stream_both_ways},
    {"multi_lat", "MPI Multi Latency", PAIRS, LATENCY, HALVES, one_each_way, ping_pong},
    {"mbw_mr", "MPI Multiple Bandwidth / Message Rate", PAIRS, BANDWIDTH_AND_RATE, WINDOWED,
     window_one_way, stream},
    {"pairs", NULL, HOSTS, LATENCY, SIZELESS, nothing, NULL},
    {"barrier", "MPI Barrier Latency", EVERYONE, LATENCY, SIZELESS, nothing, barrier},
    {"bcast", "MPI Broadcast Latency", EVERYONE, LATENCY, ROTATES_IN_PLACE, from_root, bcast},
    {"allreduce", "MPI Allreduce Latency", EVERYONE, LATENCY, REDUCES, sum, allreduce},
    {"reduce", "MPI Reduce Latency", EVERYONE, LATENCY, REDUCES | ROTATES, sum, reduce},
    {"gather", "MPI Gather Latency", EVERYONE, LATENCY, ROTATES, one_to_root, gather},
    {"gatherv", "MPI Gatherv Latency", EVERYONE, LATENCY, ROTATES | COUNTED, one_to_root, gatherv},
    {"scatter", "MPI Scatter Latency", EVERYONE, LATENCY, 0, one_from_root, scatter},
    {"scatterv", "MPI Scatterv Latency", EVERYONE, LATENCY, COUNTED, one_from_root, scatterv},
    {"allgather", "MPI Allgather Latency", EVERYONE, LATENCY, 0, one_to_root, allgather},
    {"allgatherv", "MPI Allgatherv Latency", EVERYONE, LATENCY, COUNTED, one_to_root, allgatherv},
    {"alltoall", "MPI All-to-All Personalized Exchange Latency", EVERYONE, LATENCY, 0,
     one_between_all, alltoall},
    {"alltoallv", "MPI All-to-Allv Personalized Exchange Latency", EVERYONE, LATENCY, COUNTED,
     one_between_all, alltoallv},
    {"put_lat", "MPI_Put Latency", PAIR, LATENCY, PUTS, exposed_window, put},
    {"put_bw", "MPI_Put Bandwidth", PAIR, BANDWIDTH, PUTS | WINDOWED, exposed_window, put},
    {"get_lat", "MPI_Get latency", PAIR, LATENCY, GETS, exposed_window, get},
    {"get_bw", "MPI_Get Bandwidth", PAIR, BANDWIDTH, GETS | WINDOWED, exposed_window, get},
    {"init_time", "MPI Init", STARTUP, INIT_TIME, SIZELESS, nothing, NULL},
    {"launch_time", NULL, STARTUP, LAUNCH_TIME, SIZELESS, nothing, NULL},
    {"memory", NULL, STARTUP, MEMORY, SIZELESS, nothing, NULL},
};

enum { BENCHMARK_COUNT = sizeof BENCHMARKS / sizeof *BENCHMARKS };

#endif
