/* Who counts: the process once it is in MPI, and each of its threads. */
#ifndef MPIGRAFT_TRACE_SELF_H
#define MPIGRAFT_TRACE_SELF_H

#include <mpi.h>
#include <sys/syscall.h>

#include "../calls/ticks.h"
#include "slot.h"

/* Numbers of functions and of routines: a function for large counts is of the same routine. */
#define CALL(name, parameters, arguments, before, moves, keep) F_##name,
#define LARGE(name, parameters, arguments, before, moves, keep) F_##name##_c,
enum {
#include "../calls/calls.h"
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
#include "../calls/calls.h"
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

extern struct process {
    volatile bool counting; /* between MPI_Init and the end, with a slot */
    volatile bool paused; /* by MPI_Pcontrol */
    bool waits, sites;
    struct moment began;
    struct trace_rank *head;
    MPI_Group world;       /* of the job's ranks */
    uint64_t generation;   /* changes when a handle becomes free for another object */
    uint64_t types;        /* the same, of datatypes */
    uint64_t left_out;     /* by MPI_Pcontrol, as head->paused */
    int inside;            /* ways into MPI that were taken, and not out again */
    uint64_t no_message, no_op; /* handles of MPI_MESSAGE_NO_PROC and MPI_NO_OP */
} process;

/* A communicator or a window, and which ranks of the world are in it. */
struct members {
    uint64_t handle, generation;
    int size;   /* of the remote group, for an intercommunicator */
    int own;    /* of the local one */
    int *world; /* NULL: they are the world's, in its order */
    int neighbors, sources;
    int *neighbor; /* destinations in a topology, as ranks of the world; read at first use */
};

enum { MEMBERS = 64, NEAR = 4, TYPES = 16 };

/* Of one thread. It is in static TLS, so that it is read by one instruction: what is
 * preloaded is there before any thread. */
struct self {
    int depth; /* of calls into MPI; what MPI calls in itself is not counted */
    struct trace_thread *thread;
    struct trace_routine *rows; /* NULL: calls pass by; another thread may set it */
    struct self *before, *next; /* that count */
    bool no_message;            /* the message to receive is MPI_MESSAGE_NO_PROC */
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

extern __thread struct self self __attribute__((tls_model("initial-exec")));
extern pthread_mutex_t blocks; /* of counts, one for a thread */
extern pthread_key_t thread_key;

void stop_threads(void);
void thread_ended(void *block);
COLD struct trace_routine *adopt(void);

static inline struct trace_routine *rows_of(struct self *me)
{
    struct trace_routine *rows = __atomic_load_n(&me->rows, __ATOMIC_RELAXED);
    return __builtin_expect(rows != NULL, 1) ? rows : adopt();
}

#endif
