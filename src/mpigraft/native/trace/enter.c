/* What a call passes: the names of all functions, the MPI behind them, the way in and out. */
#include <stdlib.h>

#include "enter.h"

struct process process = {.generation = 1, .types = 1};
__thread struct self self;
pthread_mutex_t blocks = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t thread_key;

/* Threads that count, and the counts of those that have ended. */
static struct self *counting_threads;
static struct trace_thread *unused_blocks;

/* Let the calls of every thread pass by from now on; with `blocks` locked. */
void stop_threads(void)
{
    for (struct self *one = counting_threads; one; one = one->next)
        __atomic_store_n(&one->rows, NULL, __ATOMIC_RELAXED);
}

void thread_ended(void *block)
{
    struct trace_thread *thread = block;
    for (size_t i = 0; self.members && i < MEMBERS; i++)
        free(self.members[i].world), free(self.members[i].neighbor);
    free(self.members);
    self.members = self.recent = NULL;
    pthread_mutex_lock(&blocks);
    *(self.before ? &self.before->next : &counting_threads) = self.next;
    if (self.next)
        self.next->before = self.before;
    thread->unused = offset_of(unused_blocks);
    unused_blocks = thread;
    self.rows = NULL;
    self.thread = NULL;
    pthread_mutex_unlock(&blocks);
}

/* A block of counts, with `blocks` locked. */
static struct trace_thread *take_block(void)
{
    struct trace_thread *thread = unused_blocks;
    if (thread) {
        unused_blocks = at_offset(thread->unused);
        return thread;
    }
    thread = take_room(sizeof *thread + ROUTINES * sizeof(struct trace_routine), DROPPED_THREADS);
    if (thread) {
        thread->thread = (int64_t)syscall(SYS_gettid);
        thread->next = process.head->threads;
        __atomic_store_n(&process.head->threads, offset_of(thread), __ATOMIC_RELEASE);
    }
    return thread;
}

/* Give this thread a block to count in, or again the one that it has; NULL: it does not count. */
COLD struct trace_routine *adopt(void)
{
    if (!process.counting || process.paused)
        return NULL;
    struct trace_thread *thread = self.thread;
    self.depth = 1; /* what follows may call what is preloaded */
    pthread_mutex_lock(&blocks);
    if (!thread && (thread = take_block())) {
        self.thread = thread;
        self.peers = at_offset(thread->peers);
        self.before = NULL;
        self.next = counting_threads;
        if (self.next)
            self.next->before = &self;
        counting_threads = &self;
        pthread_setspecific(thread_key, thread);
    }
    self.rows = thread && process.counting && !process.paused
                    ? (struct trace_routine *)(void *)(thread + 1) : NULL;
    pthread_mutex_unlock(&blocks);
    self.depth = 0;
    return self.rows;
}

/* ---- names ---- */

#define CALL(name, parameters, arguments, before, moves, keep) [F_##name] = #name,
#define LARGE(name, parameters, arguments, before, moves, keep) [F_##name##_c] = #name "_c",
const char *const names[FUNCTIONS] = {
#include "../calls/calls.h"
    [F_Init] = "Init",
    [F_Init_thread] = "Init_thread",
    [F_Finalize] = "Finalize",
    [F_Session_init] = "Session_init",
    [F_Session_finalize] = "Session_finalize",
    [F_Pcontrol] = "Pcontrol",
};

#undef CALL
#undef LARGE
#define CALL(name, parameters, arguments, before, moves, keep) [R_##name] = #name,
#define LARGE(name, parameters, arguments, before, moves, keep)
const char *const routines[ROUTINES] = {
#include "../calls/calls.h"
    [R_Init] = "Init",
    [R_Init_thread] = "Init_thread",
    [R_Finalize] = "Finalize",
    [R_Session_init] = "Session_init",
    [R_Session_finalize] = "Session_finalize",
    [R_Pcontrol] = "Pcontrol",
};

#undef CALL
#undef LARGE

#define KEPT_FIELDS(name) FIELDS_##name
#define LOST_FIELDS(name) ""
#define CALL(name, parameters, arguments, before, moves, keep) \
    [R_##name] = {#name, keep##_FIELDS(name)},
#define LARGE(name, parameters, arguments, before, moves, keep)
const struct record_routine *recorded_routines(void)
{
    static const struct record_routine all[ROUTINES] = {
#include "../calls/calls.h"
        [R_Finalize] = {"Finalize", ""},
        [R_Pcontrol] = {"Pcontrol", "i"},
    };
    return all;
}
#undef CALL
#undef LARGE

/* In place of what the MPI lacks: its own handler of errors decides what comes of it. */
static int fail(void)
{
    typedef int call_handler(MPI_Comm, int);
#ifdef OPEN_MPI
    MPI_Comm world = open_mpi_object("ompi_mpi_comm_world");
#else
    MPI_Comm world = MPI_COMM_WORLD;
#endif
    function handle = real("PMPI_Comm_call_errhandler");
    return handle ? ((call_handler *)handle)(world, MPI_ERR_OTHER), MPI_ERR_OTHER : MPI_ERR_OTHER;
}

function find_function(int profiled, int number)
{
    char name[64];
    snprintf(name, sizeof name, "%sMPI_%s", profiled ? "P" : "", names[number]);
    function result = real(name);
    if (!result) {
        if (!profiled)
            fprintf(stderr, "mpigraft-trace: the program calls %s, but no MPI library has it\n", name);
        result = (function)fail;
    }
    return functions[profiled][number] = result;
}

/* ---- a call ---- */

/* What another thread's MPI_Pcontrol left out of a call. */
COLD uint64_t paused_in(const struct self *me, uint64_t began, uint64_t now)
{
    uint64_t since = process.head->paused_since, out = process.left_out - me->thread->paused;
    out += !since ? 0 : now - (since > began ? since : began);
    return out < now - began ? out : now - began;
}
