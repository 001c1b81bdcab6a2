/* Benchmarks of pairs of ranks: which messages, and one iteration. */
#ifndef MPIGRAFT_PT2PT_H
#define MPIGRAFT_PT2PT_H

#include <pthread.h>

#include "../common/check.h"
#include "../common/clock.h"
#include "message.h"
#include "mpi_functions.h"
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

/* Several threads of a rank that call MPI at the same time: each has a partner on the other rank,
 * and messages and a tag of its own. */

struct thread {
    struct run *run;
    int number;
    long iterations;
    pthread_barrier_t *start;
    pthread_t id;
};

static void one_for_each_thread(struct run *run)
{
    enum { APART = 61 }; /* content of one thread's message to that of the next */
    for (int t = 0; t < run->window; t++) {
        size_t bytes = run->message.bytes;
        add_slot(run, &run->send, run->rank, run->peer, bytes)->key += APART * (unsigned)t;
        add_slot(run, &run->recv, run->peer, run->rank, bytes)->key += APART * (unsigned)t;
    }
}

static void send_of_thread(struct run *run, int t)
{
    pack_slot(run, t);
    CALL(Send, sent(run, t), run->message.count, run->message.type, run->peer, ACKNOWLEDGE + 1 + t,
         run->comm);
}

static void receive_of_thread(struct run *run, int t)
{
    CALL(Recv, received(run, t), run->message.count, run->message.type, run->peer,
         ACKNOWLEDGE + 1 + t, run->comm, MPI_STATUS_IGNORE);
    unpack_slot(run, t);
}

static void ping_pongs(const struct thread *thread)
{
    struct run *run = thread->run;
    for (long i = 0; i < thread->iterations; i++) {
        if (run->leads)
            send_of_thread(run, thread->number);
        receive_of_thread(run, thread->number);
        if (!run->leads)
            send_of_thread(run, thread->number);
    }
}

static void *wait_and_ping_pong(void *argument)
{
    const struct thread *thread = argument;
    pthread_barrier_wait(thread->start);
    ping_pongs(thread);
    return NULL;
}

/* Seconds from when all threads are there until the last has done its iterations. The first is
 * the one that calls this. */
static double time_threads(struct run *run, long iterations)
{
    pthread_barrier_t start;
    int count = run->window;
    struct thread *threads = need((size_t)count, sizeof *threads);
    if (pthread_barrier_init(&start, NULL, (unsigned)count))
        DIE("no barrier for %d threads", count);
    for (int t = 0; t < count; t++)
        threads[t] = (struct thread){run, t, iterations, &start, pthread_self()};
    for (int t = 1; t < count; t++)
        if (pthread_create(&threads[t].id, NULL, wait_and_ping_pong, &threads[t]))
            DIE("thread %d of %d does not start", t + 1, count);
    pthread_barrier_wait(&start);
    double begin = now();
    ping_pongs(&threads[0]);
    for (int t = 1; t < count; t++)
        pthread_join(threads[t].id, NULL);
    double took = now() - begin;
    pthread_barrier_destroy(&start);
    free(threads);
    return took;
}

#endif
