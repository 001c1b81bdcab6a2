/* One-sided benchmarks: the leader of a pair acts, the follower exposes memory and waits. */
#ifndef MPIGRAFT_ONESIDED_H
#define MPIGRAFT_ONESIDED_H

#include "check.h"
#include "large.h"
#include "message.h"
#include "run.h"

/* Each access has a place of its own on both sides, with content of its own: accesses that share
 * one find it in the nearest cache, and read up to twice as fast as memory is. */
static void window_of_places(struct run *run, struct area *area, int from, int to)
{
    enum { STEP = 61 }; /* content of one message to that of the next */
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

static MPI_Aint place_of(const struct run *run, int w)
{
    bool packed = run->message.datatype == DATATYPE_PACKED;
    return (MPI_Aint)((size_t)w * (packed ? run->message.bytes : run->message.extent));
}

static void put(struct run *run, long i)
{
    (void)i;
    if (!run->leads)
        return;
    for (int w = 0; w < run->window; w++) {
        pack_slot(run, w);
        CALL(Put, sent(run, w), run->message.count, run->message.type, run->peer,
             place_of(run, w), run->message.count, run->message.type, run->win);
    }
    OK(MPI_Win_flush(run->peer, run->win));
}

static void get(struct run *run, long i)
{
    (void)i;
    if (!run->leads)
        return;
    for (int w = 0; w < run->window; w++)
        CALL(Get, received(run, w), run->message.count, run->message.type, run->peer,
             place_of(run, w), run->message.count, run->message.type, run->win);
    OK(MPI_Win_flush(run->peer, run->win));
    unpack(run);
}

#endif
