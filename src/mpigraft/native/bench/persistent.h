/* Messages between pairs by requests that are made ready once: MPI_Send_init, MPI_Recv_init and
 * MPI_Start; and messages that leave in partitions, each when it is ready. */
#ifndef MPIGRAFT_PERSISTENT_H
#define MPIGRAFT_PERSISTENT_H

#include "mpi_functions.h"
#include "pt2pt.h"
#include "../common/check.h"
#include "message.h"
#include "run.h"

static MPI_Request *next_request(struct run *run)
{
    return &run->requests[run->persistent++];
}

static void ready_sends(struct run *run)
{
    for (int w = 0; w < run->window; w++)
        OK(MPI_Send_init(sent(run, w % run->send.slots), run->message.count, run->message.type,
                         run->peer, TAG, run->comm, next_request(run)));
}

static void ready_receives(struct run *run)
{
    for (int w = 0; w < run->window; w++)
        OK(MPI_Recv_init(received(run, w % run->recv.slots), run->message.count,
                         run->message.type, run->peer, TAG, run->comm, next_request(run)));
}

static void ready_both_ways(struct run *run)
{
    ready_receives(run);
    ready_sends(run);
}

static void ready_one_way(struct run *run)
{
    if (run->leads)
        ready_sends(run);
    else
        ready_receives(run);
}

static void start_and_wait(MPI_Request *request)
{
    OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

/* Requests: the one that receives, the one that sends. */
static void ping_pong_again(struct run *run, long i)
{
    (void)i;
    if (run->leads) {
        pack(run);
        start_and_wait(&run->requests[1]);
        start_and_wait(&run->requests[0]);
        unpack(run);
    } else {
        start_and_wait(&run->requests[0]);
        unpack(run);
        pack(run);
        start_and_wait(&run->requests[1]);
    }
}

static void start_window(struct run *run, MPI_Request *requests)
{
    OK(MPI_Startall(run->window, requests));
}

static void stream_again(struct run *run, long i)
{
    char answer = (char)i;
    if (run->leads)
        pack(run);
    start_window(run, run->requests);
    OK(MPI_Waitall(run->window, run->requests, MPI_STATUSES_IGNORE));
    if (run->leads) {
        OK(MPI_Recv(&answer, 1, MPI_CHAR, run->peer, ACKNOWLEDGE, run->comm, MPI_STATUS_IGNORE));
    } else {
        unpack(run);
        OK(MPI_Send(&answer, 1, MPI_CHAR, run->peer, ACKNOWLEDGE, run->comm));
    }
}

static void stream_both_ways_again(struct run *run, long i)
{
    (void)i;
    start_window(run, run->requests);
    pack(run);
    start_window(run, run->requests + run->window);
    OK(MPI_Waitall(2 * run->window, run->requests, MPI_STATUSES_IGNORE));
    unpack(run);
}

/* ---- partitions ---- */

/* As many as were asked for and divide the message: of one byte there is one. */
static int partitions_of(const struct run *run)
{
    long long partitions = run->options->partitions;
    while ((size_t)run->message.count % (size_t)partitions)
        partitions--;
    return (int)partitions;
}

static void ready_partitions(struct run *run)
{
    run->partitions = partitions_of(run);
    MPI_Count each = run->message.count / run->partitions;
    CALL_ADDED(Precv_init, run->recv.wire, run->partitions, each, run->message.type, run->peer, TAG,
               run->comm, MPI_INFO_NULL, next_request(run));
    CALL_ADDED(Psend_init, run->send.wire, run->partitions, each, run->message.type, run->peer, TAG,
               run->comm, MPI_INFO_NULL, next_request(run));
}

static void send_partitions(struct run *run)
{
    MPI_Request *request = &run->requests[1];
    pack(run);
    OK(MPI_Start(request));
    for (int p = 0; p < run->partitions; p++)
        CALL_ADDED(Pready, p, *request);
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
}

static void partitioned_ping_pong(struct run *run, long i)
{
    (void)i;
    OK(MPI_Start(&run->requests[0]));
    if (run->leads)
        send_partitions(run);
    OK(MPI_Wait(&run->requests[0], MPI_STATUS_IGNORE));
    unpack(run);
    if (!run->leads)
        send_partitions(run);
}

#endif
