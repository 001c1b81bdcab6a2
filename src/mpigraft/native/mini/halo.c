/* halo: an explicit step on a structured grid in three dimensions, as OpenSBLI's: several fields,
 * a stencil that is some layers deep, and halos exchanged with six neighbours. */
#include "mini.h"

enum halo_part { HALO_COMPUTE, HALO_PACK, HALO_WAIT };

static const char *const HALO_PARTS[] = {"compute", "pack", "wait", NULL};
static const char *const HALO_OPTIONS[] = {"--depth", "--fields", "--local", "--seed", "--size",
                                           NULL};

enum { SIDES = 6 }; /* lower and upper, of each dimension */

/* What goes to one side and comes from it. */
struct side {
    int rank;
    size_t first, count;                       /* of the values in the packed buffers */
    long long out[3], in[3], extent[3];        /* corners, and the extents of both */
    MPI_Datatype out_type, in_type;            /* of `indexed` */
};

struct grid {
    MPI_Comm comm;
    long long extent[3], begin[3], end[3], width[3]; /* of all, of this rank, with halos */
    int depth, fields;
    struct wire now;       /* values of a field together; x runs fastest */
    double *next;
    struct side side[SIDES];
    struct wire out, in;
    long steps;
};

static size_t value_at(const struct grid *g, int field, long long x, long long y, long long z)
{
    return (size_t)(((field * g->width[2] + z) * g->width[1] + y) * g->width[0] + x);
}

static size_t grid_values(const struct grid *g)
{
    return (size_t)(g->width[0] * g->width[1] * g->width[2]) * (size_t)g->fields;
}

/* ---- neighbours ---- */

static void place_grid(struct grid *g, const struct extents *whole, int rank, int size)
{
    int parts[MOST_DIMENSIONS], at[3], stride[3] = {1, 0, 0};
    divide_ranks(size, whole, parts);
    stride[1] = parts[0];
    stride[2] = parts[0] * parts[1];
    for (int d = 0; d < 3; d++) {
        at[d] = rank / stride[d] % parts[d];
        g->extent[d] = whole->of[d];
        g->begin[d] = part_begins(whole->of[d], parts[d], at[d]);
        g->end[d] = part_begins(whole->of[d], parts[d], at[d] + 1);
        g->width[d] = g->end[d] - g->begin[d] + 2 * g->depth;
        if (whole->of[d] / parts[d] < g->depth)
            DIE("halo: %lld points among %d ranks are fewer than %d layers for each; use a larger "
                "--size or --local", whole->of[d], parts[d], g->depth);
    }
    for (int s = 0; s < SIDES; s++) {
        int d = s / 2, step = s % 2 ? 1 : parts[d] - 1;
        g->side[s].rank = rank + ((at[d] + step) % parts[d] - at[d]) * stride[d];
    }
}

static MPI_Datatype layer_type(const struct grid *g, const long long *corner,
                               const long long *extent)
{
    int sizes[4] = {g->fields, (int)g->width[2], (int)g->width[1], (int)g->width[0]};
    int parts[4] = {g->fields, (int)extent[2], (int)extent[1], (int)extent[0]};
    int begin[4] = {0, (int)corner[2], (int)corner[1], (int)corner[0]};
    MPI_Datatype type;
    OK(MPI_Type_create_subarray(4, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* The layers at each side; of own points alone, because the stencil has no corners. */
static void plan_sides(const struct mini *mini, struct grid *g)
{
    size_t all = 0;
    for (int s = 0; s < SIDES; s++) {
        struct side *side = &g->side[s];
        side->first = all;
        side->count = (size_t)g->fields;
        for (int d = 0; d < 3; d++) {
            long long own = g->end[d] - g->begin[d];
            bool across = d == s / 2;
            side->extent[d] = across ? g->depth : own;
            side->out[d] = across && s % 2 ? own : g->depth;
            side->in[d] = !across ? g->depth : s % 2 ? own + g->depth : 0;
            side->count *= (size_t)side->extent[d];
        }
        all += side->count;
        side->out_type = side->in_type = MPI_DATATYPE_NULL;
        if (mini->options->halo == FORM_DERIVED) {
            side->out_type = layer_type(g, side->out, side->extent);
            side->in_type = layer_type(g, side->in, side->extent);
        }
    }
    g->out = make_wire(mini, all);
    g->in = make_wire(mini, all);
}

/* ---- messages ---- */

static void copy_layer(struct grid *g, const long long *corner, const long long *extent,
                       double *message, bool out)
{
    size_t bytes = (size_t)extent[0] * sizeof(double);
    for (int f = 0; f < g->fields; f++)
        for (long long z = 0; z < extent[2]; z++)
            for (long long y = 0; y < extent[1]; y++, message += extent[0]) {
                double *row = &g->now.host[value_at(g, f, corner[0], corner[1] + y,
                                                    corner[2] + z)];
                memcpy(out ? message : row, out ? row : message, bytes);
            }
}

/* The side that this one meets sends under its own number. */
static void exchange_layers(struct mini *mini, struct grid *g)
{
    MPI_Request request[2 * SIDES];
    bool typed = mini->options->halo == FORM_DERIVED;
    if (typed) /* before anything can arrive in the same memory */
        send_from(&g->now, 0, g->now.count);
    for (int s = 0; s < SIDES; s++) {
        struct side *side = &g->side[s];
        OK(MPI_Irecv(typed ? g->now.mpi : g->in.mpi + side->first, typed ? 1 : (int)side->count,
                     typed ? side->in_type : MPI_DOUBLE, side->rank, HALO_TAG + (s ^ 1), g->comm,
                     &request[s]));
    }
    for (int s = 0; s < SIDES; s++) {
        struct side *side = &g->side[s];
        if (!typed) {
            copy_layer(g, side->out, side->extent, g->out.host + side->first, true);
            send_from(&g->out, side->first, side->count);
        }
        OK(MPI_Isend(typed ? g->now.mpi : g->out.mpi + side->first, typed ? 1 : (int)side->count,
                     typed ? side->out_type : MPI_DOUBLE, side->rank, HALO_TAG + s, g->comm,
                     &request[SIDES + s]));
    }
    lap(mini, HALO_PACK);
    OK(MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE));
    lap(mini, HALO_WAIT);
    if (typed)
        arrived_at(&g->now, 0, g->now.count);
    else
        arrived_at(&g->in, 0, g->in.count);
    for (int s = 0; s < SIDES && !typed; s++)
        copy_layer(g, g->side[s].in, g->side[s].extent, g->in.host + g->side[s].first, false);
    lap(mini, HALO_PACK);
}

/* ---- one iteration ---- */

/* Each field diffuses, faster the nearer a neighbour is, and takes a little of the next one. */
static void advance(struct grid *g)
{
    long long stride[] = {1, g->width[0], g->width[0] * g->width[1]};
    for (int f = 0; f < g->fields; f++)
        for (long long z = g->depth; z < g->width[2] - g->depth; z++)
            for (long long y = g->depth; y < g->width[1] - g->depth; y++)
                for (long long x = g->depth; x < g->width[0] - g->depth; x++) {
                    size_t at = value_at(g, f, x, y, z);
                    const double *u = &g->now.host[at];
                    double sum = 0;
                    for (int d = 0; d < 3; d++)
                        for (long long k = 1; k <= g->depth; k++)
                            sum += (u[k * stride[d]] - 2 * u[0] + u[-k * stride[d]]) /
                                   (double)(k * k);
                    double other = g->now.host[value_at(g, (f + 1) % g->fields, x, y, z)];
                    g->next[at] = u[0] + 0.05 * sum + 0.01 * (other - u[0]);
                }
    for (int f = 0; f < g->fields; f++)
        for (long long z = g->depth; z < g->width[2] - g->depth; z++)
            for (long long y = g->depth; y < g->width[1] - g->depth; y++) {
                size_t at = value_at(g, f, g->depth, y, z);
                memcpy(&g->now.host[at], &g->next[at],
                       (size_t)(g->width[0] - 2 * g->depth) * sizeof(double));
            }
}

static void start_grid(const struct mini *mini, struct grid *g)
{
    for (int f = 0; f < g->fields; f++)
        for (long long z = g->begin[2]; z < g->end[2]; z++)
            for (long long y = g->begin[1]; y < g->end[1]; y++)
                for (long long x = g->begin[0]; x < g->end[0]; x++) {
                    long long point = ((f * g->extent[2] + z) * g->extent[1] + y) * g->extent[0] +
                                      x;
                    g->now.host[value_at(g, f, x - g->begin[0] + g->depth,
                                         y - g->begin[1] + g->depth,
                                         z - g->begin[2] + g->depth)] =
                        drawn(key_of(mini, 6, (uint64_t)point));
                }
}

/* ---- the mini-app ---- */

static struct grid make_grid(const struct mini *mini, const struct extents *whole)
{
    struct grid g = {.comm = mini->comm, .depth = (int)mini->options->depth,
                     .fields = (int)mini->options->fields,
                     .steps = mini->options->steps ? mini->options->steps : 10};
    place_grid(&g, whole, mini->rank, mini->size);
    if (grid_values(&g) > INT32_MAX)
        DIE("halo: %zu values of a rank are more than %d", grid_values(&g), INT32_MAX);
    require_memory(mini, 20.0 * (double)grid_values(&g));
    g.now = make_wire(mini, grid_values(&g));
    g.next = need(grid_values(&g), sizeof *g.next);
    plan_sides(mini, &g);
    return g;
}

static void free_grid(struct grid *g)
{
    for (int s = 0; s < SIDES; s++)
        if (g->side[s].out_type != MPI_DATATYPE_NULL) {
            OK(MPI_Type_free(&g->side[s].out_type));
            OK(MPI_Type_free(&g->side[s].in_type));
        }
    free_wire(&g->now);
    free_wire(&g->out);
    free_wire(&g->in);
    free(g->next);
}

static void *halo_open(struct mini *mini)
{
    static const struct extents usual = {3, {48, 48, 48}};
    struct grid *g = need(1, sizeof *g);
    struct extents whole = whole_extents(mini->options, &usual, mini->size);
    *g = make_grid(mini, &whole);
    return g;
}

static long halo_run(struct mini *mini, void *state)
{
    struct grid *g = state;
    start_grid(mini, g);
    for (long i = 0; i < g->steps; i++) {
        exchange_layers(mini, g);
        advance(g);
        lap(mini, HALO_COMPUTE);
    }
    return g->steps;
}

static void halo_close(void *state)
{
    free_grid(state);
    free(state);
}

/* Of a problem of any size: each value that has arrived is the one that its owner began with. */
static bool right_halos(struct mini *mini, struct grid *g)
{
    start_grid(mini, g);
    exchange_layers(mini, g);
    for (int s = 0; s < SIDES; s++)
        for (int f = 0; f < g->fields; f++)
            for (size_t i = 0; i < g->side[s].count / (size_t)g->fields; i++) {
                const struct side *side = &g->side[s];
                long long rest = (long long)i, at[3], place[3];
                for (int d = 0; d < 3; d++) {
                    at[d] = side->in[d] + rest % side->extent[d];
                    rest /= side->extent[d];
                    place[d] = (g->begin[d] + at[d] - g->depth + g->extent[d]) % g->extent[d];
                }
                long long point = ((f * g->extent[2] + place[2]) * g->extent[1] + place[1]) *
                                      g->extent[0] + place[0];
                double got = g->now.host[value_at(g, f, at[0], at[1], at[2])];
                double due = drawn(key_of(mini, 6, (uint64_t)point));
                if (!(distance(got, due) < 1e-15))
                    return wrong(mini, "a value of a halo", got, due);
            }
    return true;
}

static bool equal_grids(struct mini *mini, const struct grid *g, const struct grid *whole)
{
    for (int f = 0; f < g->fields; f++)
        for (long long z = g->begin[2]; z < g->end[2]; z++)
            for (long long y = g->begin[1]; y < g->end[1]; y++)
                for (long long x = g->begin[0]; x < g->end[0]; x++) {
                    int depth = g->depth;
                    double got = g->now.host[value_at(g, f, x - g->begin[0] + depth,
                                                      y - g->begin[1] + depth,
                                                      z - g->begin[2] + depth)];
                    double due = whole->now.host[value_at(whole, f, x + depth, y + depth,
                                                          z + depth)];
                    if (!(distance(got, due) < 1e-12))
                        return wrong(mini, "a value of the grid", got, due);
                }
    return true;
}

/* Each rank computes the whole by itself, and compares its own part. */
static bool halo_check(struct mini *mini, void *state)
{
    struct grid *g = state;
    bool right = true;
    double values = (double)g->extent[0] * (double)g->extent[1] * (double)g->extent[2];
    if (values * g->fields <= mini->options->serial) {
        struct mini alone = *mini;
        alone.comm = MPI_COMM_SELF;
        alone.rank = 0;
        alone.size = 1;
        struct extents extents = {3, {g->extent[0], g->extent[1], g->extent[2]}};
        struct grid whole = make_grid(&alone, &extents);
        halo_run(&alone, &whole);
        right = equal_grids(mini, g, &whole);
        free_grid(&whole);
    }
    return right_halos(mini, g) && right;
}

const struct app HALO = {"halo", HALO_PARTS, HALO_OPTIONS, halo_open, halo_run, halo_check,
    halo_close, true};
