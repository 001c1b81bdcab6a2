/* What one size of one benchmark works on: messages, their buffers, windows, counts. */
#ifndef MPIGRAFT_BUFFERS_H
#define MPIGRAFT_BUFFERS_H

#include "benchmarks.h"
#include "check.h"
#include "large.h"
#include "message.h"
#include "run.h"

/* ---- windows ---- */

/* What this rank exposes, or NULL. */
static struct area *exposed_area(struct run *run)
{
    if (run->leads || !has(run, PUTS | GETS))
        return NULL;
    return has(run, PUTS) ? &run->recv : &run->send;
}

/* Memory of the window comes from MPI where it can, as OSU's default has it: libraries place
 * it where their fastest path reaches. GPU memory is lent to the window instead. */
static void open_window(struct run *run)
{
    struct area *area = exposed_area(run);
    MPI_Aint bytes = area ? (MPI_Aint)area->wire_bytes : 0;
    if (run->options->buffers == BUFFERS_HOST) {
        char *base = NULL;
        bytes += area ? GUARD : 0;
        OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, run->comm, &base, &run->win));
        if (area && !area->data)
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

static struct distribution distribute(const struct run *run, const struct area *area)
{
    size_t ranks = (size_t)run->size, unit = is_indexed(&run->message) ? run->message.extent : 1;
    struct distribution made = {need(ranks, sizeof *made.counts), need(ranks, sizeof *made.places),
                                need(ranks, sizeof *made.large_counts),
                                need(ranks, sizeof *made.large_places)};
    for (int i = 0; i < area->slots && i < run->size; i++) {
        size_t bytes = area->slot[i].bytes;
        made.large_counts[i] = (MPI_Count)(is_indexed(&run->message) ? bytes > 0 : bytes);
        made.large_places[i] = (MPI_Aint)(area->slot[i].wire / unit);
        made.counts[i] = run->large ? 0 : (int)made.large_counts[i];
        made.places[i] = run->large ? 0 : (int)made.large_places[i];
    }
    return made;
}

static void forget_distribution(struct distribution *made)
{
    free(made->counts);
    free(made->places);
    free(made->large_counts);
    free(made->large_places);
}

/* Whether a count, or a displacement, is more than an int holds. */
static bool needs_large_counts(const struct run *run)
{
    size_t out = run->send.wire_bytes, in = run->recv.wire_bytes;
    bool far = has(run, COUNTED) && !is_indexed(&run->message);
    return run->message.count > INT_LIMIT || (far && (out > in ? out : in) > INT_LIMIT);
}

static void plan_size(struct run *run, size_t bytes)
{
    size_t room = MAX_IN_FLIGHT / (bytes ? bytes : 1);
    size_t window = (size_t)run->options->window;
    run->message = make_message(run->benchmark, run->options->datatype, bytes);
    if (like_osu(run) && has(run, REDUCES)) {
        run->message.type = MPI_SIGNED_CHAR; /* OSU's default; floats are a choice there */
        run->message.count = (MPI_Count)bytes;
    }
    run->window = !has(run, WINDOWED) ? 1 : (int)(window < room ? window : room ? room : 1);
    plan_areas(run);
    run->large = needs_large_counts(run);
}

static void set_up(struct run *run, size_t bytes)
{
    plan_size(run, bytes);
    make_content(2 * bytes);
    commit_message(&run->message);
    if (run->large)
        bind_large_calls(run->benchmark);
    struct area *exposed = run->options->buffers == BUFFERS_HOST ? exposed_area(run) : NULL;
    allocate_area(run, &run->send, exposed == &run->send);
    allocate_area(run, &run->recv, exposed == &run->recv);
    run->requests = need(2 * (size_t)run->window, sizeof *run->requests);
    run->outgoing = distribute(run, &run->send);
    run->incoming = distribute(run, &run->recv);
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
    forget_distribution(&run->outgoing);
    forget_distribution(&run->incoming);
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
