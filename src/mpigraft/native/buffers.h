/* What one size of one benchmark works on: messages, their buffers, windows, counts. */
#ifndef MPIGRAFT_BUFFERS_H
#define MPIGRAFT_BUFFERS_H

#include "benchmarks.h"
#include "check.h"
#include "message.h"
#include "run.h"

/* ---- windows ---- */

/* Memory of the window comes from MPI where it can, as OSU's default has it: libraries place
 * it where their fastest path reaches. GPU memory is lent to the window instead. */
static void open_window(struct run *run)
{
    struct area *area = run->leads ? NULL : has(run, PUTS) ? &run->recv : &run->send;
    MPI_Aint bytes = area ? (MPI_Aint)area->wire_bytes : 0;
    if (run->options->buffers == BUFFERS_HOST) {
        char *base = NULL;
        bytes += area ? GUARD : 0;
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, run->comm, &base, &run->win));
        if (area && area->wire == area->data)
            area->data = area->host = base;
        if (area)
            area->wire = base;
    } else {
        OK(MPI_Win_create(area ? area->wire : NULL, bytes, 1, MPI_INFO_NULL, run->comm,
                          &run->win));
    }
    OK(MPI_Win_lock_all(0, run->win));
}

static void close_window(struct run *run)
{
    OK(MPI_Win_unlock_all(run->win));
    OK(MPI_Win_free(&run->win));
}

/* ---- one size ---- */

static void counts_of(const struct run *run, const struct area *area, int *counts, int *places)
{
    bool bytes = run->message.type == MPI_CHAR;
    for (int i = 0; i < area->slots && i < run->size; i++) {
        counts[i] = bytes ? (int)area->slot[i].bytes : area->slot[i].bytes > 0;
        places[i] = (int)(area->slot[i].wire / (bytes ? 1 : run->message.extent));
    }
}

static void plan_size(struct run *run, size_t bytes)
{
    size_t room = MAX_IN_FLIGHT / (bytes ? bytes : 1);
    size_t window = (size_t)run->options->window;
    run->message = make_message(run->benchmark, run->options->datatype, bytes);
    if (like_osu(run) && has(run, REDUCES)) {
        run->message.type = MPI_SIGNED_CHAR; /* OSU's default; floats are a choice there */
        run->message.count = (int)bytes;
    }
    run->window = !has(run, WINDOWED) ? 1 : (int)(window < room ? window : room ? room : 1);
    plan_areas(run);
}

static void set_up(struct run *run, size_t bytes)
{
    plan_size(run, bytes);
    make_content(2 * bytes);
    allocate_area(run, &run->send);
    allocate_area(run, &run->recv);
    run->requests = need(2 * (size_t)run->window, sizeof *run->requests);
    run->send_counts = need(4 * (size_t)run->size, sizeof *run->send_counts);
    run->send_places = run->send_counts + run->size;
    run->recv_counts = run->send_places + run->size;
    run->recv_places = run->recv_counts + run->size;
    if (has(run, COUNTED)) {
        counts_of(run, &run->send, run->send_counts, run->send_places);
        counts_of(run, &run->recv, run->recv_counts, run->recv_places);
    }
    run->valid = true;
    run->win = MPI_WIN_NULL;
    if (has(run, PUTS | GETS))
        open_window(run);
}

static void tear_down(struct run *run)
{
    if (run->win != MPI_WIN_NULL)
        close_window(run);
    free(run->requests);
    free(run->send_counts);
    release_area(run, &run->send);
    release_area(run, &run->recv);
    forget_areas(run);
    free_message(&run->message);
}

/* New content to send, poison where it shall arrive. */
static void prepare(struct run *run)
{
    run->round++;
    fill(run, &run->send);
    poison(run, &run->recv);
    if (has(run, ROTATES_IN_PLACE) && run->rank == 0)
        fill(run, &run->recv); /* the root of iteration 0 */
    if (has(run, GETS) && !run->leads)
        pack(run);
    if (run->win != MPI_WIN_NULL)
        OK(MPI_Win_sync(run->win));
}

/* Look at what arrived in a batch of `iterations`. */
static void check(struct run *run, long iterations)
{
    if (run->win != MPI_WIN_NULL) {
        OK(MPI_Barrier(run->comm));
        OK(MPI_Win_sync(run->win));
        if (has(run, PUTS) && !run->leads)
            unpack(run);
    }
    if (has(run, ROTATES) && run->rank >= (like_osu(run) ? 1 : iterations))
        return; /* was never the root */
    check_area(run, &run->recv);
}

#endif
