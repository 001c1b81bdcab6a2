/* What one size of one benchmark works on: messages, their buffers, windows, counts. */
#include "../common/check.h"
#include "../common/memory.h"
#include "message.h"
#include "mpi_functions.h"

/* ---- windows ---- */

/* What this rank exposes, or NULL. */
static struct area *exposed_area(struct run *run)
{
    if (run->leads || !has(run, PUTS | GETS))
        return NULL;
    return has(run, PUTS) ? &run->recv : &run->send;
}

static MPI_Group group_of_peer(const struct run *run)
{
    MPI_Group all, peer;
    OK(MPI_Comm_group(run->comm, &all));
    OK(MPI_Group_incl(all, 1, &run->peer, &peer));
    OK(MPI_Group_free(&all));
    return peer;
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
    if (run->options->sync == SYNC_FLUSH)
        OK(MPI_Win_lock_all(0, run->win));
    else if (run->options->sync == SYNC_FENCE)
        OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, run->win));
    else if (run->options->sync == SYNC_PSCW)
        run->other = group_of_peer(run);
}

static void close_window(struct run *run)
{
    if (run->options->sync == SYNC_FLUSH)
        OK(MPI_Win_unlock_all(run->win));
    else if (run->options->sync == SYNC_FENCE)
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, run->win));
    else if (run->options->sync == SYNC_PSCW)
        OK(MPI_Group_free(&run->other));
    OK(MPI_Win_free(&run->win));
}

/* What this rank stored in its own memory, and what others stored there, is one. */
static void synchronize_window(struct run *run)
{
    switch (run->options->sync) {
    case SYNC_FLUSH: OK(MPI_Win_sync(run->win)); break;
    case SYNC_FENCE: OK(MPI_Win_fence(0, run->win)); break;
    case SYNC_LOCK:
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, run->rank, 0, run->win));
        OK(MPI_Win_unlock(run->rank, run->win));
        break;
    default: break; /* post does it */
    }
}

/* ---- one size ---- */

static struct distribution distribute(const struct run *run, const struct area *area)
{
    size_t room = (size_t)(area->slots > run->size ? area->slots : run->size);
    size_t unit = is_indexed(&run->message) && !has(run, BYTE_PLACES) ? run->message.extent : 1;
    size_t element = has(run, REDUCES) && run->message.count
                         ? run->message.bytes / (size_t)run->message.count
                         : 1;
    struct distribution made = {need(room, sizeof *made.counts), need(room, sizeof *made.places),
                                need(room, sizeof *made.large_counts),
                                need(room, sizeof *made.large_places),
                                need(room, sizeof *made.types)};
    for (size_t i = 0; i < room; i++)
        made.types[i] = run->message.type;
    for (int i = 0; i < area->slots; i++) {
        size_t bytes = area->slot[i].bytes;
        made.large_counts[i] = (MPI_Count)(is_indexed(&run->message) ? bytes > 0 : bytes / element);
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
    free(made->types);
}

/* Whether a count, or a displacement, is more than an int holds. */
static bool needs_large_counts(const struct run *run)
{
    size_t out = run->send.wire_bytes, in = run->recv.wire_bytes;
    bool far = has(run, COUNTED) && (!is_indexed(&run->message) || has(run, BYTE_PLACES));
    return run->message.count > INT_LIMIT || (far && (out > in ? out : in) > INT_LIMIT);
}

void plan_size(struct run *run, size_t bytes)
{
    size_t room = MAX_IN_FLIGHT / (bytes ? bytes : 1);
    size_t window = (size_t)run->options->window;
    run->message = make_message(run->benchmark, run->options->datatype, bytes);
    if (like_osu(run) && has(run, REDUCES)) {
        run->message.type = MPI_SIGNED_CHAR; /* OSU's default; floats are a choice there */
        run->message.count = (MPI_Count)bytes;
    }
    run->window = has(run, THREADED)    ? (int)run->options->threads
                  : !has(run, WINDOWED) ? 1
                                        : (int)(window < room ? window : room ? room : 1);
    plan_areas(run);
    run->large = needs_large_counts(run);
}

void set_up(struct run *run, size_t bytes)
{
    plan_size(run, bytes);
    make_content(2 * bytes);
    commit_message(&run->message);
    if (run->large)
        bind_large_calls(run->benchmark);
    struct area *exposed = run->options->buffers == BUFFERS_HOST ? exposed_area(run) : NULL;
    allocate_area(run, &run->send, exposed == &run->send);
    allocate_area(run, &run->recv, exposed == &run->recv);
    run->requests = need(2 * (size_t)run->window + MOST_ROOTS, sizeof *run->requests);
    run->persistent = 0;
    run->neighbors = MPI_COMM_NULL;
    run->outgoing = distribute(run, &run->send);
    run->incoming = distribute(run, &run->recv);
    run->valid = true;
    run->win = MPI_WIN_NULL;
    if (has(run, PUTS | GETS))
        open_window(run);
    if (run->benchmark->open)
        run->benchmark->open(run);
}

void tear_down(struct run *run)
{
    if (run->win != MPI_WIN_NULL)
        close_window(run);
    for (int i = 0; i < run->persistent; i++)
        OK(MPI_Request_free(&run->requests[i]));
    if (run->neighbors != MPI_COMM_NULL)
        OK(MPI_Comm_free(&run->neighbors));
    free(run->requests);
    forget_distribution(&run->outgoing);
    forget_distribution(&run->incoming);
    release_area(run, &run->send);
    release_area(run, &run->recv);
    forget_areas(run);
    free_message(&run->message);
}

/* ---- content in place ---- */

/* What this rank gives is where the result arrives. */
static void fill_in_place(struct run *run)
{
    if (has(run, IN_PLACE_SUM) || (has(run, IN_PLACE_ROOT) && run->rank == 0))
        fill(run, &run->recv); /* rank 0 is the root of iteration 0 */
    if (has(run, IN_PLACE_OWN))
        fill_slot(run, &run->recv, &run->recv.slot[run->rank]);
    for (int p = 0; p < run->recv.slots && has(run, IN_PLACE_SWAP); p++) {
        struct slot given = run->recv.slot[p];
        given.key = run->send.slot[p].key;
        fill_slot(run, &run->recv, &given);
    }
    upload(run, &run->recv);
}

/* Which of the two numbers is where this rank looks after so many exchanges. */
static void expect_swapped(struct run *run, long exchanges)
{
    int from = run->leads ? run->rank : run->peer, to = run->leads ? run->peer : run->rank;
    bool second = (exchanges + run->leads) % 2 == 0;
    run->recv.slot[0].key = key_between(from, to) + (second ? STEP : 0);
}

/* Parts that were exchanged an even number of times are what they were at first. */
static void exchange_keys(struct run *run)
{
    for (int p = 0; p < run->recv.slots; p++) {
        unsigned key = run->recv.slot[p].key;
        run->recv.slot[p].key = run->send.slot[p].key;
        run->send.slot[p].key = key;
    }
}

/* ---- before and after a batch ---- */

/* New content to send, poison where it shall arrive. */
void prepare(struct run *run)
{
    run->round++;
    fill(run, &run->send);
    poison(run, &run->recv);
    if (in_place(run))
        fill_in_place(run);
    if (has(run, ROTATES_IN_PLACE) && run->rank == 0)
        fill(run, &run->recv); /* the root of iteration 0 */
    if (has(run, SWAPS) && !run->leads) {
        expect_swapped(run, 0);
        fill(run, &run->recv);
    }
    if (has(run, GETS) && !run->leads)
        pack(run);
    if (run->win != MPI_WIN_NULL)
        synchronize_window(run);
}

/* Whether this rank was never the root that receives, so that nothing arrived. */
static bool received_nothing(const struct run *run, long iterations)
{
    int roots = roots_of(run);
    return has(run, ROTATES) && run->rank >= (iterations < roots ? iterations : roots);
}

/* Look at what arrived in a batch of `iterations`. */
void check(struct run *run, long iterations)
{
    if (run->win != MPI_WIN_NULL) {
        OK(MPI_Barrier(run->comm));
        synchronize_window(run);
        if (has(run, PUTS) && !run->leads)
            unpack(run);
    }
    if (received_nothing(run, iterations))
        return;
    bool back = in_place(run) && has(run, IN_PLACE_SWAP) && iterations % 2 == 0;
    run->accumulated = run->leads ? iterations - 1 : iterations;
    if (back)
        exchange_keys(run);
    if (has(run, SWAPS))
        expect_swapped(run, iterations);
    check_area(run, &run->recv);
    if (back)
        exchange_keys(run);
}
