/* Whether this rank waits in a call for longer than the whole program ran: a record of several
 * threads may need two of its calls at once. Then the replay ends, and says where. */
#ifndef MPIGRAFT_REPLAY_WATCH_H
#define MPIGRAFT_REPLAY_WATCH_H

#include <pthread.h>

#include "run.h"

enum { LEAST_WAIT_S = 60, LONGER = 3 }; /* than the program */

static struct {
    double limit_s;
    bool ends; /* the replay; else it only tells */
} watch;

static void *watch_calls(void *nothing)
{
    (void)nothing;
    uint64_t number = 0;
    struct moment since = moment_now();
    for (;;) {
        nanosleep(&(struct timespec){0, 200 * 1000 * 1000}, NULL);
        const struct call *call = __atomic_load_n(&run.current, __ATOMIC_ACQUIRE);
        if (!call || number != run.events) {
            number = run.events;
            since = moment_now();
            continue;
        }
        double waited_s = 1e-9 * (double)(moment_now().ns - since.ns);
        if (waited_s < watch.limit_s)
            continue;
        fprintf(stderr,
                PROGRAM ": rank %d waits in MPI_%s, call %llu of its record, for %.0f s%s\n", speaker,
                call->routine->name, (unsigned long long)number, waited_s,
                watch.ends ? ": the record has calls of several threads, which one thread may not be "
                             "able to repeat; the replay ends"
                           : "");
        if (watch.ends)
            _exit(EXIT_RUNTIME);
        return NULL;
    }
}

/* `run_s`: of the program, with the gaps that are made. */
static void start_watch(double run_s, double patience_s)
{
    static pthread_t thread;
    watch.ends = record.threads;
    watch.limit_s = patience_s > 0 ? patience_s : LEAST_WAIT_S + LONGER * run_s;
    if (pthread_create(&thread, NULL, watch_calls, NULL))
        fprintf(stderr, PROGRAM ": no thread to watch the calls\n");
}

#endif
