/* libmpigraft-trace.so: preloaded into every rank, counts what it calls of MPI.
 *
 * With MPIGRAFT_TRACE=FOLDER each call of a function of calls.h is timed and counted in the slot
 * of this rank (slot.h), from the return of MPI_Init on. Both names of a function are taken,
 * MPI_X and PMPI_X: Fortran libraries call the one or the other, and a call counts once, where it
 * comes in from outside (`depth`). Threads count on their own. Nothing is sent and nobody is
 * waited for, but with MPIGRAFT_TRACE_OPTIONS=waits, which puts a barrier before each blocking
 * collective and a probe before each MPI_Recv. It never fails a program: what cannot be counted is
 * said on stderr, and the program goes on.
 *
 * It needs no MPI library by name. One source, built for each ABI: handles differ.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "count.h"
#include "enter.h"

/* What `waits` does first; the time it takes is waiting for others. */
#define AT_ONCE
#define AWAITED(what)                             \
    if (__builtin_expect(process.waits, 0)) {     \
        what;                                     \
        row->waited += ticks() - began;           \
    }
#define BEFORE_ABORT (end_recording(ENDED_BY_ABORT, R_Abort), publish_slot())
#define AWAIT_ALL(comm) AWAITED(PMPI(Barrier, int (*)(MPI_Comm))(comm))
/* Of several threads each could take the message that another was promised. */
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

/* ---- functions that a program takes from a library's handle (next_mpi.h) ---- */

#define CALL(name, parameters, arguments, before, moves, keep) \
    [F_##name] = __extension__(function)trace_##name,
#define LARGE(name, parameters, arguments, before, moves, keep) \
    [F_##name##_c] = __extension__(function)trace_##name##_c,
static const function wrappers[FUNCTIONS] = {
#include "../calls/calls.h"
    [F_Init] = (function)trace_Init,
    [F_Init_thread] = (function)trace_Init_thread,
    [F_Finalize] = (function)trace_Finalize,
    [F_Session_init] = (function)trace_Session_init,
    [F_Session_finalize] = (function)trace_Session_finalize,
    [F_Pcontrol] = (function)trace_Pcontrol,
};
#undef CALL
#undef LARGE

/* Ours for a function of the first MPI that a program opens; another one is not traced. What comes
 * next may be the witness's own for this library: it is called, and the library is that of a
 * function which nobody takes. What the MPI lacks is absent, though it is among our names. */
PLAIN void *mpigraft_taken(void *handle, const char *name)
{
    lookup *next = next_dlsym();
    bool profiled = name && name[0] == 'P';
    if (!name || strncmp(name + profiled, "MPI_", 4) || handle == RTLD_NEXT)
        return NULL;
    int number = 0;
    while (number < FUNCTIONS && strcmp(name + profiled + 4, names[number]))
        number++;
    if (number == FUNCTIONS)
        return NULL;
    void *address = next(handle, name), *own, *none = NULL;
    if (is_absent(name, address))
        return ABSENT;
    if (handle == RTLD_DEFAULT || profiled)
        return NULL;
    void *plain = address ? next(handle, "PMPI_Comm_rank") : NULL;
    Dl_info where;
    if (!plain || !dladdr(plain, &where) || !where.dli_fname)
        return NULL;
    memcpy(&own, &wrappers[number], sizeof own);
    if (address == own)
        return NULL;
    void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* kept open */
    if (!library)
        return NULL;
    if (!atomic_compare_exchange_strong(&origin, &none, library) && none != library)
        return dlclose(library), NULL;
    if (!functions[0][number])
        memcpy(&functions[0][number], &address, sizeof address);
    return own;
}
