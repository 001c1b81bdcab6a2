/* Who counts: the process once it is in MPI, and each of its threads. */
#ifndef MPIGRAFT_TRACE_SELF_H
#define MPIGRAFT_TRACE_SELF_H

#include <mpi.h>
#include <sys/syscall.h>

#include "ticks.h"
#include "trace_slot.h"

/* Numbers of functions and of routines: a function for large counts is of the same routine. */
#define CALL(name, parameters, arguments, before, moves, keep) F_##name,
#define LARGE(name, parameters, arguments, before, moves, keep) F_##name##_c,
enum {
#include "calls.h"
    F_Init,
    F_Init_thread,
    F_Finalize,
    F_Session_init,
    F_Session_finalize,
    F_Pcontrol,
    FUNCTIONS
};
#undef CALL
#undef LARGE
#define CALL(name, parameters, arguments, before, moves, keep) R_##name,
#define LARGE(name, parameters, arguments, before, moves, keep)
enum {
#include "calls.h"
    R_Init,
    R_Init_thread,
    R_Finalize,
    R_Session_init,
    R_Session_finalize,
    R_Pcontrol,
    ROUTINES
};
#undef CALL
#undef LARGE

static struct {
    volatile bool counting; /* between MPI_Init and the end, with a slot */
    volatile bool paused; /* by MPI_Pcontrol */
    bool waits, sites;
    struct moment began;
    struct trace_rank *head;
    MPI_Group world;       /* of the job's ranks */
    uint64_t generation;   /* changes when a handle becomes free for another object */
} process = {.generation = 1};

/* A communicator or a window, and which ranks of the world are in it. */
struct members {
    uint64_t handle, generation;
    int size;   /* of the remote group, for an intercommunicator */
    int *world; /* NULL: they are the world's, in its order */
    int neighbors, sources;
    int *neighbor; /* destinations in a topology, as ranks of the world; read at first use */
};

enum { MEMBERS = 64, NEAR = 4, TYPES = 16 };

/* Of one thread. It stands in static TLS, so that it is read by one instruction: what is
 * preloaded is there before any thread. */
struct self {
    int depth; /* of calls into MPI; what MPI calls in itself is not counted */
    struct trace_thread *thread;
    struct trace_routine *rows;
    struct trace_peer *peers;
    struct {
        uint64_t type, generation, size;
    } types[TYPES];
    struct members *members; /* MEMBERS of them */
    struct members *recent;  /* the communicator's that was used last */
};

/* Not a part of each of some five hundred functions. */
#define OUTSIDE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))

static __thread struct self self __attribute__((tls_model("initial-exec")));

/* Blocks of threads that have ended. */
static pthread_mutex_t blocks = PTHREAD_MUTEX_INITIALIZER;
static struct trace_thread *unused[64];
static size_t unused_count;
static pthread_key_t thread_key;

static void thread_ended(void *thread)
{
    for (size_t i = 0; self.members && i < MEMBERS; i++)
        free(self.members[i].world), free(self.members[i].neighbor);
    free(self.members);
    self.members = self.recent = NULL;
    self.rows = NULL;
    self.thread = NULL;
    pthread_mutex_lock(&blocks);
    if (unused_count < sizeof unused / sizeof *unused)
        unused[unused_count++] = thread;
    pthread_mutex_unlock(&blocks);
}

/* Give this thread a block to count in. */
COLD static bool adopt(void)
{
    if (!process.counting || process.paused)
        return false;
    struct trace_thread *thread = self.thread; /* it was paused */
    if (thread)
        return (self.rows = (struct trace_routine *)(void *)(thread + 1)), true;
    self.depth = 1; /* what follows may call what is preloaded */
    pthread_mutex_lock(&blocks);
    if (unused_count)
        thread = unused[--unused_count];
    pthread_mutex_unlock(&blocks);
    if (!thread) {
        thread = take_room(sizeof *thread + ROUTINES * sizeof(struct trace_routine),
                           DROPPED_THREADS);
        if (thread) {
            thread->thread = (int64_t)syscall(SYS_gettid);
            pthread_mutex_lock(&blocks);
            thread->next = process.head->threads;
            __atomic_store_n(&process.head->threads, offset_of(thread), __ATOMIC_RELEASE);
            pthread_mutex_unlock(&blocks);
        }
    }
    if (thread) {
        self.thread = thread;
        self.rows = (struct trace_routine *)(void *)(thread + 1);
        self.peers = at_offset(thread->peers);
        pthread_setspecific(thread_key, thread);
    }
    self.depth = 0;
    return thread;
}

#endif
