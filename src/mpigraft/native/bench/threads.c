/* Several threads of a rank that call MPI at the same time: each has a partner on the other rank,
 * and messages and a tag of its own. */
#include <pthread.h>

#include "../common/check.h"
#include "../common/clock.h"
#include "measure.h"
#include "message.h"
#include "mpi_functions.h"

struct thread {
    struct run *run;
    int number;
    long iterations;
    pthread_barrier_t *start;
    pthread_t id;
};

void one_for_each_thread(struct run *run)
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
double time_threads(struct run *run, long iterations)
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
