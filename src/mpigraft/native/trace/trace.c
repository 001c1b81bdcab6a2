/* libmpigraft-trace.so: preloaded into every rank, counts what it calls of MPI.
 *
 * With MPIGRAFT_TRACE=FOLDER each call of a function of calls.h is timed and counted in the slot
 * of this rank (node_file.h), from the return of MPI_Init on. Both names of a function are taken,
 * MPI_X and PMPI_X: Fortran libraries call the one or the other, and a call counts once, where it
 * comes in from outside (`depth`). Threads count on their own. Nothing is sent and nobody is
 * waited for, but with MPIGRAFT_TRACE_OPTIONS=waits, which puts a barrier before each blocking
 * collective and a probe before each MPI_Recv. It never fails a program: what cannot be counted is
 * said on stderr, and the program goes on.
 *
 * It needs no MPI library by name. One source, built for each ABI: handles differ.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../preload/dlopened_mpi.h"
#include "../preload/next_mpi.h"
#include "../preload/task.h"
#include "bindings.h"
#include "later.h"
#include "record_writer.h"
#include "sites.h"

#define EXPORT __attribute__((visibility("default")))
#define TAKEN(name) __asm__("MPI_" name)
/* The same function under its other name. */
#define ALSO(id, name)                                   \
    extern __typeof__(trace_##id) trace_P##id __asm__("PMPI_" name) \
        __attribute__((alias("MPI_" name), visibility("default")))

/* ---- names ---- */

#define CALL(name, parameters, arguments, before, moves, keep) [F_##name] = #name,
#define LARGE(name, parameters, arguments, before, moves, keep) [F_##name##_c] = #name "_c",
static const char *const names[FUNCTIONS] = {
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
static const char *const routines[ROUTINES] = {
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
static const struct record_routine *recorded_routines(void)
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

static function find_function(int profiled, int number)
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

static inline uint64_t enter(struct self *me, uint64_t routine)
{
    uint64_t now = ticks();
    me->depth = 1;
    me->thread->current = routine + 1;
    me->thread->entered = now;
    me->thread->paused = process.left_out;
    return now;
}

/* What another thread's MPI_Pcontrol left out of a call. */
COLD static uint64_t paused_in(const struct self *me, uint64_t began, uint64_t now)
{
    uint64_t since = process.head->paused_since, out = process.left_out - me->thread->paused;
    out += !since ? 0 : now - (since > began ? since : began);
    return out < now - began ? out : now - began;
}

static inline uint64_t leave(struct self *me, struct trace_routine *row, uint64_t began, int code)
{
    uint64_t now = ticks(), took = now - began;
    if (__builtin_expect(process.paused || process.left_out != me->thread->paused, 0))
        took -= paused_in(me, began, now);
    row->calls++;
    row->ticks += took;
    if (took > row->longest)
        row->longest = took;
    if (__builtin_expect(code != MPI_SUCCESS, 0))
        row->errors++;
    me->thread->current = 0;
    me->thread->entered = now;
    return took;
}

/* What `waits` does first; the time it takes is waiting for others. */
#define AT_ONCE
#define AWAITED(what)                             \
    if (__builtin_expect(process.waits, 0)) {     \
        what;                                     \
        row->waited += ticks() - began;           \
    }
#define BEFORE_ABORT (end_recording(ENDED_BY_ABORT, R_Abort), publish_slot())
#define AWAIT_ALL(comm) AWAITED(PMPI(Barrier, int (*)(MPI_Comm))(comm))
/* Of several threads each could take the message of which another was told. */
#define AWAIT_MESSAGE(source, tag, comm)                                              \
    AWAITED(if ((source) != MPI_PROC_NULL && process.head->thread_level < MPI_THREAD_MULTIPLE) \
                PMPI(Probe, int (*)(int, int, MPI_Comm, MPI_Status *))(               \
                    source, tag, comm, MPI_STATUS_IGNORE))

/* Which handles there are, and what a request sends, is to be known after a pause too. */
#define ALWAYS(routine)                                                                         \
    ((routine) == R_Send_init || (routine) == R_Bsend_init || (routine) == R_Ssend_init ||      \
     (routine) == R_Rsend_init || (routine) == R_Psend_init || (routine) == R_Request_free ||   \
     (routine) == R_Comm_free || (routine) == R_Comm_disconnect || (routine) == R_Win_free ||   \
     (routine) == R_Type_free)

#define PASS(name, parameters, arguments, before, moves)           \
    {                                                              \
        struct trace_routine *const row = NULL;                    \
        uint64_t const began = 0, took = 0;                        \
        (void)row, (void)began, (void)took;                        \
        before;                                                    \
        int const code = ((int (*) parameters)real_)arguments;     \
        if (!code) {                                               \
            moves;                                                 \
        }                                                          \
        return code;                                               \
    }

#define WRAPPER(id, symbol, name, parameters, arguments, before, moves, keep)       \
    EXPORT int trace_##id parameters TAKEN(symbol);                                 \
    EXPORT int trace_##id parameters                                                \
    {                                                                               \
        struct self *const me = &self;                                              \
        struct trace_routine *const rows =                                          \
            me->depth || OWN_QUERY(R_##name, #name) ? NULL : rows_of(me);           \
        if (!rows) {                                                                \
            function const real_ = next_function(me->depth > 0, F_##id);            \
            if (ALWAYS(R_##name) && !me->depth && process.paused)                   \
                PASS(name, parameters, arguments, before, moves)                    \
            return ((int (*) parameters)real_)arguments;                            \
        }                                                                           \
        struct trace_routine *const row = &rows[R_##name];                          \
        function const next = next_function(0, F_##id);                             \
        me->depth = 1;                                                              \
        keep##_BEFORE(name, R_##name) uint64_t const began = enter(me, R_##name);   \
        before;                                                                     \
        int const code = ((int (*) parameters)next)arguments;                       \
        uint64_t const took = leave(me, row, began, code), bytes = row->bytes;      \
        if (__builtin_expect(!code, 1)) {                                           \
            moves;                                                                  \
        }                                                                           \
        if (__builtin_expect(process.sites, 0))                                     \
            count_site(R_##name, took, row->bytes - bytes);                         \
        keep##_AFTER(name, code, took)                                              \
        me->depth = 0;                                                              \
        return code;                                                                \
    }                                                                               \
    ALSO(id, symbol);

#define CALL(name, parameters, arguments, before, moves, keep) \
    WRAPPER(name, #name, name, parameters, arguments, before, moves, keep)
#define LARGE(name, parameters, arguments, before, moves, keep) \
    WRAPPER(name##_c, #name "_c", name, parameters, arguments, before, moves, keep)
#include "../calls/calls.h"
#undef CALL
#undef LARGE

#include "taken.h"
