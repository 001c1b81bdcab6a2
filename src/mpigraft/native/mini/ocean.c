/* ocean: the surface of an ocean, as NEMO has it: halos in two dimensions, periodic from west to
 * east and folded in the north, where the top row meets itself in reverse; sums over all ranks; and
 * output to ranks that do nothing else. */
#include "mini.h"

enum ocean_part { OCEAN_COMPUTE, OCEAN_HALO, OCEAN_FOLD, OCEAN_ALLREDUCE, OCEAN_OUTPUT };

static const char *const OCEAN_PARTS[] = {"compute", "halo", "fold", "allreduce", "output", NULL};
static const char *const OCEAN_OPTIONS[] = {"--every", "--io", "--local", "--seed", "--size",
                                            NULL};

/* One rank's part of the surface, with a ring of one point; x runs fastest. */
struct ocean {
    MPI_Comm comm, north;     /* ranks that compute; of them those at the top */
    int workers, io, parts[2];
    long long extent[2], begin[2], end[2], width;
    int neighbour[4];         /* west, east, south, north; -1: none */
    struct wire level, edge[4], ring[4], row, top; /* edges sent and received; the fold's rows */
    double *next, energy;     /* the last sum over all ranks */
    int *counts, *places, *takes, *offsets; /* of output, for all ranks */
    struct wire outgoing, output;
    long steps, every;
};

enum { WEST, EAST, SOUTH, NORTH };

static bool computes(const struct ocean *o)
{
    return o->comm != MPI_COMM_NULL;
}

static size_t own_points(const struct ocean *o)
{
    return computes(o) ? (size_t)((o->end[0] - o->begin[0]) * (o->end[1] - o->begin[1])) : 0;
}

static double *level_at(const struct ocean *o, long long x, long long y)
{
    return &o->level.host[(y + 1) * o->width + x + 1];
}

static void box_of_worker(const struct ocean *o, int worker, long long *begin, long long *end)
{
    int at[] = {worker % o->parts[0], worker / o->parts[0]};
    for (int d = 0; d < 2; d++) {
        begin[d] = part_begins(o->extent[d], o->parts[d], at[d]);
        end[d] = part_begins(o->extent[d], o->parts[d], at[d] + 1);
    }
}

/* ---- making ---- */

static void find_neighbours(struct ocean *o, int worker)
{
    int at[] = {worker % o->parts[0], worker / o->parts[0]}, row = at[1] * o->parts[0];
    o->neighbour[WEST] = row + (at[0] + o->parts[0] - 1) % o->parts[0];
    o->neighbour[EAST] = row + (at[0] + 1) % o->parts[0];
    o->neighbour[SOUTH] = at[1] ? worker - o->parts[0] : -1;
    o->neighbour[NORTH] = at[1] + 1 < o->parts[1] ? worker + o->parts[0] : -1;
}

/* The first I/O rank of those after the workers takes the output of the first of them, and so on:
 * all other counts are zero. */
static void plan_output(const struct mini *mini, struct ocean *o)
{
    size_t ranks = (size_t)mini->size;
    int **numbers[] = {&o->counts, &o->places, &o->takes, &o->offsets};
    for (int i = 0; i < 4; i++)
        *numbers[i] = need(ranks + 1, sizeof(int));
    for (int w = 0; w < o->workers && o->io; w++) {
        int server = o->workers + w * o->io / o->workers;
        long long begin[2], end[2];
        box_of_worker(o, w, begin, end);
        int points = (int)((end[0] - begin[0]) * (end[1] - begin[1]));
        if (mini->rank == w)
            o->counts[server] = points;
        if (mini->rank == server)
            o->takes[w] = points;
    }
    for (int r = 0; r < mini->size; r++) {
        o->places[r + 1] = o->places[r] + o->counts[r];
        o->offsets[r + 1] = o->offsets[r] + o->takes[r];
    }
    o->outgoing = make_wire(mini, (size_t)o->places[mini->size]);
    o->output = make_wire(mini, (size_t)o->offsets[mini->size]);
}

static struct ocean make_ocean(const struct mini *mini, const struct extents *whole, int io)
{
    struct ocean o = {.workers = mini->size - io, .io = io, .north = MPI_COMM_NULL,
                      .steps = mini->options->steps ? mini->options->steps : 20,
                      .every = mini->options->every};
    int parts[MOST_DIMENSIONS], worker = mini->rank;
    divide_ranks(o.workers, whole, parts);
    for (int d = 0; d < 2; d++) {
        o.parts[d] = parts[d];
        o.extent[d] = whole->of[d];
        if (whole->of[d] < parts[d])
            DIE("ocean: %lld points are fewer than %d ranks; use a larger --size or --local",
                whole->of[d], parts[d]);
    }
    OK(MPI_Comm_split(mini->comm, worker < o.workers ? 0 : MPI_UNDEFINED, worker, &o.comm));
    if (computes(&o)) {
        box_of_worker(&o, worker, o.begin, o.end);
        find_neighbours(&o, worker);
        OK(MPI_Comm_split(o.comm, o.neighbour[NORTH] < 0 ? 0 : MPI_UNDEFINED, worker, &o.north));
        o.width = o.end[0] - o.begin[0] + 2;
    }
    size_t x = (size_t)(o.end[0] - o.begin[0]), y = (size_t)(o.end[1] - o.begin[1]);
    o.level = make_wire(mini, (x + 2) * (y + 2));
    o.next = need((x + 2) * (y + 2), sizeof *o.next);
    for (int s = 0; s < 4; s++) {
        o.edge[s] = make_wire(mini, s < SOUTH ? y : x);
        o.ring[s] = make_wire(mini, s < SOUTH ? y : x);
    }
    o.row = make_wire(mini, (size_t)(whole->of[0] / o.parts[0] + 1));
    o.top = make_wire(mini, (size_t)(whole->of[0] / o.parts[0] + 1) * (size_t)o.parts[0]);
    plan_output(mini, &o);
    return o;
}

static void free_ocean(struct ocean *o)
{
    struct wire *wires[] = {&o->level, &o->row, &o->top, &o->outgoing, &o->output};
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        free_wire(wires[i]);
    for (int s = 0; s < 4; s++) {
        free_wire(&o->edge[s]);
        free_wire(&o->ring[s]);
    }
    int *numbers[] = {o->counts, o->places, o->takes, o->offsets};
    for (int i = 0; i < 4; i++)
        free(numbers[i]);
    free(o->next);
    if (o->north != MPI_COMM_NULL)
        OK(MPI_Comm_free(&o->north));
    if (computes(o))
        OK(MPI_Comm_free(&o->comm));
}

/* ---- one iteration ---- */

/* Values of one edge: the outermost own points, or the ring beyond them. */
static void copy_edge(const struct ocean *o, int side, double *values, bool ring)
{
    long long x = o->end[0] - o->begin[0], y = o->end[1] - o->begin[1];
    long long count = side < SOUTH ? y : x;
    for (long long i = 0; i < count; i++) {
        long long across = side == WEST || side == SOUTH ? (ring ? -1 : 0)
                           : side == EAST                ? (ring ? x : x - 1)
                                                         : (ring ? y : y - 1);
        double *at = side < SOUTH ? level_at(o, across, i) : level_at(o, i, across);
        *(ring ? at : &values[i]) = *(ring ? &values[i] : at);
    }
}

static void exchange_edges(struct mini *mini, struct ocean *o)
{
    MPI_Request request[8];
    int made = 0;
    for (int s = 0; s < 4; s++)
        if (o->neighbour[s] >= 0)
            OK(MPI_Irecv(o->ring[s].mpi, (int)o->ring[s].count, MPI_DOUBLE, o->neighbour[s],
                         HALO_TAG + (s ^ 1), o->comm, &request[made++]));
    for (int s = 0; s < 4; s++)
        if (o->neighbour[s] >= 0) {
            copy_edge(o, s, o->edge[s].host, false);
            send_from(&o->edge[s], 0, o->edge[s].count);
            OK(MPI_Isend(o->edge[s].mpi, (int)o->edge[s].count, MPI_DOUBLE, o->neighbour[s],
                         HALO_TAG + s, o->comm, &request[made++]));
        }
    OK(MPI_Waitall(made, request, MPI_STATUSES_IGNORE));
    for (int s = 0; s < 4; s++)
        if (o->neighbour[s] >= 0) {
            arrived_at(&o->ring[s], 0, o->ring[s].count);
            copy_edge(o, s, o->ring[s].host, true);
        }
    lap(mini, OCEAN_HALO);
}

/* The ranks at the top gather its row; beyond it is the same row from east to west. */
static void fold_north(struct mini *mini, struct ocean *o)
{
    if (o->north == MPI_COMM_NULL)
        return;
    long long x = o->end[0] - o->begin[0], y = o->end[1] - o->begin[1];
    int room = (int)o->row.count;
    copy_edge(o, NORTH, o->row.host, false);
    send_from(&o->row, 0, o->row.count);
    OK(MPI_Allgather(o->row.mpi, room, MPI_DOUBLE, o->top.mpi, room, MPI_DOUBLE, o->north));
    arrived_at(&o->top, 0, o->top.count);
    for (long long i = 0; i < x; i++) {
        long long mirrored = o->extent[0] - 1 - (o->begin[0] + i);
        int part = (int)(((mirrored + 1) * o->parts[0] - 1) / o->extent[0]);
        long long within = mirrored - part_begins(o->extent[0], o->parts[0], part);
        *level_at(o, i, y) = o->top.host[(long long)part * room + within];
    }
    lap(mini, OCEAN_FOLD);
}

static void flow(struct mini *mini, struct ocean *o)
{
    long long x = o->end[0] - o->begin[0], y = o->end[1] - o->begin[1];
    bool coast = o->neighbour[SOUTH] < 0;
    double mine = 0;
    for (long long j = 0; j < y; j++)
        for (long long i = 0; i < x; i++) {
            double here = *level_at(o, i, j), south = *level_at(o, i, j - 1);
            if (coast && j == 0)
                south = here;
            double sum = *level_at(o, i - 1, j) + *level_at(o, i + 1, j) + south +
                         *level_at(o, i, j + 1);
            double depth = 0.15 + 0.05 * drawn(key_of(mini, 8, (uint64_t)(
                (o->begin[1] + j) * o->extent[0] + o->begin[0] + i)));
            o->next[j * x + i] = here + depth * (sum - 4 * here);
            mine += here * here;
        }
    for (long long j = 0; j < y; j++)
        memcpy(level_at(o, 0, j), &o->next[j * x], (size_t)x * sizeof *o->next);
    lap(mini, OCEAN_COMPUTE);
    OK(MPI_Allreduce(&mine, &o->energy, 1, MPI_DOUBLE, MPI_SUM, o->comm));
    lap(mini, OCEAN_ALLREDUCE);
}

/* Every rank calls; workers give, I/O ranks take. */
static void put_out(struct mini *mini, struct ocean *o)
{
    long long x = o->end[0] - o->begin[0], y = o->end[1] - o->begin[1];
    for (long long j = 0; j < y && o->outgoing.count; j++)
        memcpy(&o->outgoing.host[j * x], level_at(o, 0, j), (size_t)x * sizeof(double));
    send_from(&o->outgoing, 0, o->outgoing.count);
    OK(MPI_Alltoallv(o->outgoing.mpi, o->counts, o->places, MPI_DOUBLE, o->output.mpi, o->takes,
                     o->offsets, MPI_DOUBLE, mini->comm));
    arrived_at(&o->output, 0, o->output.count);
    lap(mini, OCEAN_OUTPUT);
}

/* ---- the mini-app ---- */

static void *ocean_open(struct mini *mini)
{
    static const struct extents usual = {2, {180, 120}};
    struct ocean *o = need(1, sizeof *o);
    int io = (int)mini->options->io;
    if (io >= mini->size) { /* one rank computes, at least */
        if (was_given("--io") && io)
            DIE("ocean: %d I/O ranks of %d leave none that computes", io, mini->size);
        io = 0;
    }
    struct extents whole = whole_extents(mini->options, &usual, mini->size - io);
    if (volume(&whole) > INT32_MAX)
        DIE("ocean: %lld points are more than %d", volume(&whole), INT32_MAX);
    require_memory(mini, 40.0 * (double)volume(&whole)); /* each computes the whole, to check */
    *o = make_ocean(mini, &whole, io);
    return o;
}

static long ocean_run(struct mini *mini, void *state)
{
    struct ocean *o = state;
    for (long long j = o->begin[1]; j < o->end[1] && computes(o); j++)
        for (long long i = o->begin[0]; i < o->end[0]; i++)
            *level_at(o, i - o->begin[0], j - o->begin[1]) =
                drawn(key_of(mini, 7, (uint64_t)(j * o->extent[0] + i)));
    for (long step = 1; step <= o->steps; step++) {
        if (computes(o)) {
            exchange_edges(mini, o);
            fold_north(mini, o);
            flow(mini, o);
        }
        if (o->io && (step % o->every == 0 || step == o->steps))
            put_out(mini, o);
    }
    return o->steps;
}

static void ocean_close(void *state)
{
    free_ocean(state);
    free(state);
}

/* A worker's points of the whole, one by one, against what is here. */
static bool equal_points(const struct mini *mini, const struct ocean *o, const struct ocean *whole,
                         int worker, const double *got, const char *what)
{
    long long begin[2], end[2];
    box_of_worker(o, worker, begin, end);
    for (long long j = begin[1]; j < end[1]; j++)
        for (long long i = begin[0]; i < end[0]; i++, got++)
            if (!(distance(*got, *level_at(whole, i, j)) < 1e-12))
                return wrong(mini, what, *got, *level_at(whole, i, j));
    return true;
}

/* Each rank computes the whole by itself, and compares what it has: its points, the sum over all,
 * or the output that it took. */
static bool ocean_check(struct mini *mini, void *state)
{
    struct ocean *o = state;
    struct mini alone = *mini;
    alone.comm = MPI_COMM_SELF;
    alone.rank = 0;
    alone.size = 1;
    struct extents extents = {2, {o->extent[0], o->extent[1]}};
    struct ocean whole = make_ocean(&alone, &extents, 0);
    ocean_run(&alone, &whole);
    bool right = true;
    if (computes(o)) {
        long long x = o->end[0] - o->begin[0], y = o->end[1] - o->begin[1];
        double *own = need(own_points(o), sizeof *own);
        for (long long j = 0; j < y; j++)
            memcpy(&own[j * x], level_at(o, 0, j), (size_t)x * sizeof *own);
        right = equal_points(mini, o, &whole, mini->rank, own, "a level");
        if (right && !(distance(o->energy, whole.energy) < 1e-9 * (1 + whole.energy)))
            right = wrong(mini, "the sum over all ranks", o->energy, whole.energy);
        free(own);
    }
    for (int w = 0; w < o->workers && right; w++)
        if (o->takes[w])
            right = equal_points(mini, o, &whole, w, o->output.host + o->offsets[w], "an output");
    free_ocean(&whole);
    return right;
}

const struct app OCEAN = {"ocean", OCEAN_PARTS, OCEAN_OPTIONS, ocean_open, ocean_run,
    ocean_check, ocean_close, false};
