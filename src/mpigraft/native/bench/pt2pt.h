/* Benchmarks of pairs of ranks: which messages, and one iteration. */
#ifndef MPIGRAFT_PT2PT_H
#define MPIGRAFT_PT2PT_H

#include "../common/check.h"
#include "message.h"
#include "mpi_functions.h"
#include "run.h"

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

#endif
