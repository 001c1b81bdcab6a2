/* The table of benchmarks: which messages, one iteration, what it measures. */
#ifndef MPIGRAFT_BENCHMARKS_H
#define MPIGRAFT_BENCHMARKS_H

#include "check.h"
#include "large.h"
#include "message.h"
#include "onesided.h"
#include "run.h"

enum { TAG = 1, ACKNOWLEDGE = 2 };

#define SEND_BUFFER run->send.wire, run->message.count, run->message.type
#define RECV_BUFFER run->recv.wire, run->message.count, run->message.type

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
        CALL(Send, SEND_BUFFER, run->peer, TAG, run->comm);
        CALL(Recv, RECV_BUFFER, run->peer, TAG, run->comm, MPI_STATUS_IGNORE);
        unpack(run);
    } else {
        CALL(Recv, RECV_BUFFER, run->peer, TAG, run->comm, MPI_STATUS_IGNORE);
        unpack(run);
        pack(run);
        CALL(Send, SEND_BUFFER, run->peer, TAG, run->comm);
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
    for (int w = 0; w < (like_osu(run) ? 1 : run->window); w++)
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
        CALL(Isend, sent(run, w % run->send.slots), run->message.count, run->message.type,
             run->peer, TAG, run->comm, &requests[w]);
    }
}

static void start_receives(struct run *run, MPI_Request *requests)
{
    for (int w = 0; w < run->window; w++)
        CALL(Irecv, received(run, w % run->recv.slots), run->message.count, run->message.type,
             run->peer, TAG, run->comm, &requests[w]);
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
    CALL(Bcast, RECV_BUFFER, root_of(run, i), run->comm);
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
    CALL(Allreduce, run->send.wire, run->recv.wire, run->message.count, run->message.type, MPI_SUM,
         run->comm);
}

static void reduce(struct run *run, long i)
{
    CALL(Reduce, run->send.wire, run->recv.wire, run->message.count, run->message.type, MPI_SUM,
         root_of(run, i), run->comm);
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
    CALL(Gather, SEND_BUFFER, RECV_BUFFER, root_of(run, i), run->comm);
    if (run->rank == root_of(run, i))
        unpack(run);
}

static void gatherv(struct run *run, long i)
{
    pack(run);
    const struct distribution *out = &run->outgoing, *in = &run->incoming;
    if (run->large)
        CALL_LARGE(Gatherv, run->send.wire, out->large_counts[0], run->message.type,
                   run->recv.wire, in->large_counts, in->large_places, run->message.type,
                   root_of(run, i), run->comm);
    else
        OK(MPI_Gatherv(run->send.wire, out->counts[0], run->message.type, run->recv.wire,
                       in->counts, in->places, run->message.type, root_of(run, i), run->comm));
    if (run->rank == root_of(run, i))
        unpack(run);
}

static void scatter(struct run *run, long i)
{
    if (run->rank == root_of(run, i))
        pack(run);
    CALL(Scatter, SEND_BUFFER, RECV_BUFFER, root_of(run, i), run->comm);
    unpack(run);
}

static void scatterv(struct run *run, long i)
{
    if (run->rank == root_of(run, i))
        pack(run);
    const struct distribution *out = &run->outgoing, *in = &run->incoming;
    if (run->large)
        CALL_LARGE(Scatterv, run->send.wire, out->large_counts, out->large_places,
                   run->message.type, run->recv.wire, in->large_counts[0], run->message.type,
                   root_of(run, i), run->comm);
    else
        OK(MPI_Scatterv(run->send.wire, out->counts, out->places, run->message.type,
                        run->recv.wire, in->counts[0], run->message.type, root_of(run, i),
                        run->comm));
    unpack(run);
}

static void allgather(struct run *run, long i)
{
    (void)i;
    pack(run);
    CALL(Allgather, SEND_BUFFER, RECV_BUFFER, run->comm);
    unpack(run);
}

static void allgatherv(struct run *run, long i)
{
    (void)i;
    pack(run);
    const struct distribution *out = &run->outgoing, *in = &run->incoming;
    if (run->large)
        CALL_LARGE(Allgatherv, run->send.wire, out->large_counts[0], run->message.type,
                   run->recv.wire, in->large_counts, in->large_places, run->message.type,
                   run->comm);
    else
        OK(MPI_Allgatherv(run->send.wire, out->counts[0], run->message.type, run->recv.wire,
                          in->counts, in->places, run->message.type, run->comm));
    unpack(run);
}

static void alltoall(struct run *run, long i)
{
    (void)i;
    pack(run);
    CALL(Alltoall, SEND_BUFFER, RECV_BUFFER, run->comm);
    unpack(run);
}

static void alltoallv(struct run *run, long i)
{
    (void)i;
    pack(run);
    const struct distribution *out = &run->outgoing, *in = &run->incoming;
    if (run->large)
        CALL_LARGE(Alltoallv, run->send.wire, out->large_counts, out->large_places,
                   run->message.type, run->recv.wire, in->large_counts, in->large_places,
                   run->message.type, run->comm);
    else
        OK(MPI_Alltoallv(run->send.wire, out->counts, out->places, run->message.type,
                         run->recv.wire, in->counts, in->places, run->message.type, run->comm));
    unpack(run);
}

/* ---- the table ---- */

static const struct benchmark BENCHMARKS[] = {
    {"latency", "MPI Latency", PAIR, LATENCY, HALVES, one_each_way, ping_pong, {SEND, RECV}},
    {"bw", "MPI Bandwidth", PAIR, BANDWIDTH, WINDOWED, window_one_way, stream, {ISEND, IRECV}},
    {"bibw", "MPI Bi-Directional Bandwidth", PAIR, BANDWIDTH, WINDOWED | BOTH_WAYS,
     window_both_ways, stream_both_ways, {ISEND, IRECV}},
    {"multi_lat", "MPI Multi Latency", PAIRS, LATENCY, HALVES,
     one_each_way, ping_pong, {SEND, RECV}},
    {"mbw_mr", "MPI Multiple Bandwidth / Message Rate", PAIRS, BANDWIDTH_AND_RATE, WINDOWED,
     window_one_way, stream, {ISEND, IRECV}},
    {"pairs", NULL, HOSTS, LATENCY, SIZELESS, nothing, NULL, {NO_CALL}},
    {"barrier", "MPI Barrier Latency", EVERYONE, LATENCY, SIZELESS, nothing, barrier, {NO_CALL}},
    {"bcast", "MPI Broadcast Latency", EVERYONE, LATENCY, ROTATES_IN_PLACE,
     from_root, bcast, {BCAST}},
    {"allreduce", "MPI Allreduce Latency", EVERYONE, LATENCY, REDUCES, sum, allreduce, {ALLREDUCE}},
    {"reduce", "MPI Reduce Latency", EVERYONE, LATENCY, REDUCES | ROTATES, sum, reduce, {REDUCE}},
    {"gather", "MPI Gather Latency", EVERYONE, LATENCY, ROTATES, one_to_root, gather, {GATHER}},
    {"gatherv", "MPI Gatherv Latency", EVERYONE, LATENCY, ROTATES | COUNTED,
     one_to_root, gatherv, {GATHERV}},
    {"scatter", "MPI Scatter Latency", EVERYONE, LATENCY, 0, one_from_root, scatter, {SCATTER}},
    {"scatterv", "MPI Scatterv Latency", EVERYONE, LATENCY, COUNTED,
     one_from_root, scatterv, {SCATTERV}},
    {"allgather", "MPI Allgather Latency", EVERYONE, LATENCY, 0,
     one_to_root, allgather, {ALLGATHER}},
    {"allgatherv", "MPI Allgatherv Latency", EVERYONE, LATENCY, COUNTED,
     one_to_root, allgatherv, {ALLGATHERV}},
    {"alltoall", "MPI All-to-All Personalized Exchange Latency", EVERYONE, LATENCY, 0,
     one_between_all, alltoall, {ALLTOALL}},
    {"alltoallv", "MPI All-to-Allv Personalized Exchange Latency", EVERYONE, LATENCY, COUNTED,
     one_between_all, alltoallv, {ALLTOALLV}},
    {"put_lat", "MPI_Put Latency", PAIR, LATENCY, PUTS, exposed_window, put, {PUT}},
    {"put_bw", "MPI_Put Bandwidth", PAIR, BANDWIDTH, PUTS | WINDOWED, exposed_window, put, {PUT}},
    {"get_lat", "MPI_Get latency", PAIR, LATENCY, GETS, exposed_window, get, {GET}},
    {"get_bw", "MPI_Get Bandwidth", PAIR, BANDWIDTH, GETS | WINDOWED, exposed_window, get, {GET}},
    {"init_time", "MPI Init", STARTUP, INIT_TIME, SIZELESS, nothing, NULL, {NO_CALL}},
    {"launch_time", NULL, STARTUP, LAUNCH_TIME, SIZELESS, nothing, NULL, {NO_CALL}},
    {"memory", NULL, STARTUP, MEMORY, SIZELESS, nothing, NULL, {NO_CALL}},
};

enum { BENCHMARK_COUNT = sizeof BENCHMARKS / sizeof *BENCHMARKS };

#endif
