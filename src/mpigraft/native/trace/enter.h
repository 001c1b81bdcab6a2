/* What a call passes: the names of all functions, the MPI behind them, the way in and out. */
#ifndef MPIGRAFT_TRACE_ENTER_H
#define MPIGRAFT_TRACE_ENTER_H

#include <stdint.h>
#include <stdio.h>

#include "objects.h"
#include "recorder.h"

#define EXPORT __attribute__((visibility("default")))
#define TAKEN(name) __asm__("MPI_" name)
/* The same function under its other name. */
#define ALSO(id, name)                                   \
    extern __typeof__(trace_##id) trace_P##id __asm__("PMPI_" name) \
        __attribute__((alias("MPI_" name), visibility("default")))

/* The ways in and out (start.c). */
EXPORT int trace_Init(int *argc, char ***argv) TAKEN("Init");
EXPORT int trace_Init_thread(int *argc, char ***argv, int required, int *level)
    TAKEN("Init_thread");
EXPORT int trace_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session)
    TAKEN("Session_init");
EXPORT int trace_Session_finalize(MPI_Session *session) TAKEN("Session_finalize");
EXPORT int trace_Finalize(void) TAKEN("Finalize");
EXPORT int trace_Pcontrol(const int level, ...) TAKEN("Pcontrol");

/* Of functions and of routines, without MPI_. */
extern const char *const names[FUNCTIONS], *const routines[ROUTINES];

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

COLD uint64_t paused_in(const struct self *me, uint64_t began, uint64_t now);

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

#endif
