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

#endif
