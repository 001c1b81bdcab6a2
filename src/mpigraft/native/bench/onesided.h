/* One-sided benchmarks: the leader of a pair acts, the follower exposes memory and waits, or takes
 * part in how an access ends (--sync).
 *
 * flush: all is locked once, each access ends with a flush, the follower does nothing. fence: both
 * call MPI_Win_fence. pscw: the follower posts and waits, the leader starts and completes. lock:
 * the leader locks and unlocks, the follower does nothing.
 */
#ifndef MPIGRAFT_ONESIDED_H
#define MPIGRAFT_ONESIDED_H

#include "../common/check.h"
#include "mpi_functions.h"
#include "message.h"
#include "run.h"

/* ---- epochs ---- */

static void open_access(struct run *run)
{
    if (run->options->sync == SYNC_PSCW)
        OK(MPI_Win_start(run->other, 0, run->win));
    else if (run->options->sync == SYNC_LOCK)
        OK(MPI_Win_lock(MPI_LOCK_SHARED, run->peer, 0, run->win));
}

static void complete_access(struct run *run)
{
    switch (run->options->sync) {
    case SYNC_FENCE: OK(MPI_Win_fence(0, run->win)); break;
    case SYNC_PSCW: OK(MPI_Win_complete(run->win)); break;
    case SYNC_LOCK: OK(MPI_Win_unlock(run->peer, run->win)); break;
    default: OK(MPI_Win_flush(run->peer, run->win));
    }
}

/* The follower's part in one access. */
static void expose(struct run *run)
{
    if (run->options->sync == SYNC_FENCE) {
        OK(MPI_Win_fence(0, run->win));
    } else if (run->options->sync == SYNC_PSCW) {
        OK(MPI_Win_post(run->other, 0, run->win));
        OK(MPI_Win_wait(run->win));
    }
}

/* ---- messages ---- */

/* Each access has a place of its own on both sides, with content of its own: accesses that share
 * one find it in the nearest cache, and read up to twice as fast as memory is. */
static void window_of_places(struct run *run, struct area *area, int from, int to)
{
    for (int w = 0; w < run->window; w++)
        add_slot(run, area, from, to, run->message.bytes)->key += STEP * (unsigned)w;
}

static void exposed_window(struct run *run)
{
    if (run->leads == has(run, PUTS))
        window_of_places(run, &run->send, run->rank, run->peer);
    else
        window_of_places(run, &run->recv, run->peer, run->rank);
}

/* What the leader sends, what comes back to it, and what the follower exposes have one key. */
static void number_of_both(struct run *run)
{
    int from = run->leads ? run->rank : run->peer, to = run->leads ? run->peer : run->rank;
    if (run->leads)
        add_slot(run, &run->send, from, to, run->message.bytes);
    if (run->leads && has(run, SWAPS))
        add_slot(run, &run->send, from, to, run->message.bytes)->key += STEP;
    if (!run->leads || has(run, FETCHES))
        add_slot(run, &run->recv, from, to, run->message.bytes);
}

static MPI_Aint place_of(const struct run *run, int w)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    return (MPI_Aint)((size_t)w * (packed ? run->message.bytes : run->message.extent));
}

/* ---- accesses ---- */

static void put(struct run *run, long i)
{
    (void)i;
    if (!run->leads) {
        expose(run);
        return;
    }
    open_access(run);
    for (int w = 0; w < run->window; w++) {
        pack_slot(run, w);
        CALL(Put, sent(run, w), run->message.count, run->message.type, run->peer,
             place_of(run, w), run->message.count, run->message.type, run->win);
    }
    complete_access(run);
}

static void get(struct run *run, long i)
{
    (void)i;
    if (!run->leads) {
        expose(run);
        return;
    }
    open_access(run);
    for (int w = 0; w < run->window; w++)
        CALL(Get, received(run, w), run->message.count, run->message.type, run->peer,
             place_of(run, w), run->message.count, run->message.type, run->win);
    complete_access(run);
    unpack(run);
}

static MPI_Op addition(const struct run *run)
{
    return run->message.type == MPI_BYTE ? MPI_BXOR : MPI_SUM;
}

/* One access of the leader to the follower's memory. */
#define ACCESS(name, call)                                                                         \
    static void name(struct run *run, long i)                                                      \
    {                                                                                              \
        (void)i;                                                                                   \
        if (!run->leads) {                                                                         \
            expose(run);                                                                           \
            return;                                                                                \
        }                                                                                          \
        open_access(run);                                                                          \
        OK(call);                                                                                  \
        complete_access(run);                                                                      \
    }

#define MESSAGE run->message.count, run->message.type
ACCESS(accumulate, MPI_Accumulate(run->send.wire, MESSAGE, run->peer, 0, MESSAGE, addition(run),
                                  run->win))
ACCESS(get_accumulate, MPI_Get_accumulate(run->send.wire, MESSAGE, run->recv.wire, MESSAGE,
                                          run->peer, 0, MESSAGE, addition(run), run->win))
ACCESS(fetch_and_op, MPI_Fetch_and_op(run->send.wire, run->recv.wire, run->message.type, run->peer,
                                      0, MPI_SUM, run->win))
/* The follower has the second number at first; then the two replace each other in turn. */
ACCESS(compare_and_swap,
       MPI_Compare_and_swap(sent(run, i % 2), sent(run, 1 - i % 2), run->recv.wire,
                            run->message.type, run->peer, 0, run->win))
#undef MESSAGE

#endif
