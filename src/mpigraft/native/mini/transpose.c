/* transpose: a 3-D Fourier transform of a sphere of data, as plane-wave codes (CASTEP, VASP)
 * have it: to the grid, times a potential, and back. Pencils of a grid of ranks are transposed by
 * MPI_Alltoallv among all ranks, so most counts are zero, and the sphere makes the others uneven.
 */
#include "mini.h"

enum { X, Y, Z };

/* A box of the grid that a rank has with one direction whole. Points outside of the sphere are left out
 * of z-pencils, and columns of x outside of its shadow out of y-pencils. */
struct box {
    long long begin[3], end[3];
};

static struct box common(const struct box *one, const struct box *two)
{
    struct box both;
    for (int d = 0; d < 3; d++) {
        both.begin[d] = one->begin[d] > two->begin[d] ? one->begin[d] : two->begin[d];
        both.end[d] = one->end[d] < two->end[d] ? one->end[d] : two->end[d];
        if (both.end[d] < both.begin[d])
            both.end[d] = both.begin[d];
    }
    return both;
}

static size_t box_volume(const struct box *box)
{
    size_t product = 1;
    for (int d = 0; d < 3; d++)
        product *= (size_t)(box->end[d] - box->begin[d]);
    return product;
}

/* The place of a point among those of a box; the direction `whole` runs fastest. */
static size_t point_at(const struct box *box, int whole, long long x, long long y, long long z)
{
    long long place[] = {x, y, z};
    size_t at = 0;
    for (int d = 2; d >= 0; d--)
        if (d != whole)
            at = at * (size_t)(box->end[d] - box->begin[d]) + (size_t)(place[d] - box->begin[d]);
    return at * (size_t)(box->end[whole] - box->begin[whole]) +
           (size_t)(place[whole] - box->begin[whole]);
}

enum transpose_part { TRANSPOSE_ALLTOALLV, TRANSPOSE_COMPUTE, TRANSPOSE_PACK };

static const char *const TRANSPOSE_PARTS[] = {"alltoallv", "compute", "pack", NULL};
static const char *const TRANSPOSE_OPTIONS[] = {"--local", "--percent", "--seed", "--size", NULL};

/* Which values go where in one transpose. Counts are in numbers, two for each complex value. */
struct route {
    int *counts, *places; /* of each rank, and their sums */
    int *back, *from;     /* what arrives */
    struct wire out, in;
};

struct transpose {
    long long extent[3];
    int grid[2], at[2];     /* ranks across, and this one's place */
    double limit;           /* square of the radius */
    struct box z, y, x;
    struct fourier plan[3]; /* of each direction */
    struct complex *pencil[3], *start; /* by their whole direction; what a sample begins with */
    struct route zy, yx;
    bool plain;             /* without the potential: what comes back is what went */
    long steps;
};

/* ---- the sphere ---- */

/* Frequency of a place: 0, 1, 2 ... -2, -1. */
static long long frequency(long long place, long long extent)
{
    return place <= extent / 2 ? place : place - extent;
}

static bool in_shadow(const struct transpose *t, long long x, long long y)
{
    double fx = (double)frequency(x, t->extent[X]), fy = (double)frequency(y, t->extent[Y]);
    return fx * fx + fy * fy <= t->limit;
}

static bool in_sphere(const struct transpose *t, long long x, long long y, long long z)
{
    double fx = (double)frequency(x, t->extent[X]), fy = (double)frequency(y, t->extent[Y]);
    double fz = (double)frequency(z, t->extent[Z]);
    return fx * fx + fy * fy + fz * fz <= t->limit;
}

static bool column_used(const struct transpose *t, long long x)
{
    return in_shadow(t, x, 0);
}

/* ---- boxes ---- */

/* The part of a rank at (a, b) of the grid in each of three divisions. */
static struct box box_of(const struct transpose *t, int whole, int a, int b)
{
    static const int first[] = {Y, X, X}, second[] = {Z, Z, Y}; /* of whole X, Y, Z */
    struct box box = {{0, 0, 0}, {t->extent[X], t->extent[Y], t->extent[Z]}};
    int one = first[whole], two = second[whole];
    box.begin[one] = part_begins(t->extent[one], t->grid[0], a);
    box.end[one] = part_begins(t->extent[one], t->grid[0], a + 1);
    box.begin[two] = part_begins(t->extent[two], t->grid[1], b);
    box.end[two] = part_begins(t->extent[two], t->grid[1], b + 1);
    return box;
}

/* ---- transposes ---- */

/* Whether a column along the direction that two divisions share is sent at all. */
static bool is_sent(const struct transpose *t, int whole, long long x, long long y)
{
    return whole == Z ? in_shadow(t, x, y) : column_used(t, x);
}

/* Copy what two ranks have in common between a pencil and a message. Returns its numbers. */
static int copy_common(const struct transpose *t, const struct box *own, const struct box *other,
                       int whole, int own_whole, struct complex *pencil, double *message,
                       bool out)
{
    struct box both = common(own, other);
    int count = 0;
    for (long long x = both.begin[X]; x < both.end[X]; x++)
        for (long long y = both.begin[Y]; y < both.end[Y]; y++) {
            if (!is_sent(t, whole, x, y))
                continue;
            for (long long z = both.begin[Z]; z < both.end[Z]; z++, count += 2) {
                if (!message)
                    continue;
                struct complex *value = &pencil[point_at(own, own_whole, x, y, z)];
                if (out)
                    memcpy(message + count, value, sizeof *value);
                else
                    memcpy(value, message + count, sizeof *value);
            }
        }
    return count;
}

static struct box other_box(const struct transpose *t, int whole, int rank)
{
    return box_of(t, whole, rank / t->grid[1], rank % t->grid[1]);
}

/* From pencils along `from` to those along `to`; `whole` is the first of the two on the way to the
 * grid, whose columns are sent. */
static struct route plan_route(const struct mini *mini, const struct transpose *t, int from,
                               int to)
{
    size_t ranks = (size_t)mini->size;
    struct route route = {need(ranks, sizeof(int)), need(ranks + 1, sizeof(int)),
                          need(ranks, sizeof(int)), need(ranks + 1, sizeof(int)), {0}, {0}};
    struct box gives = other_box(t, from, mini->rank), taken = other_box(t, to, mini->rank);
    for (int r = 0; r < mini->size; r++) {
        struct box theirs = other_box(t, to, r), ours = other_box(t, from, r);
        route.counts[r] = copy_common(t, &gives, &theirs, from, from, NULL, NULL, true);
        route.back[r] = copy_common(t, &taken, &ours, from, to, NULL, NULL, false);
        route.places[r + 1] = route.places[r] + route.counts[r];
        route.from[r + 1] = route.from[r] + route.back[r];
    }
    route.out = make_wire(mini, (size_t)route.places[mini->size]);
    route.in = make_wire(mini, (size_t)route.from[mini->size]);
    return route;
}

static void free_route(struct route *route)
{
    free(route->counts);
    free(route->places);
    free(route->back);
    free(route->from);
    free_wire(&route->out);
    free_wire(&route->in);
}

/* Pencils along `from` become those along `to`; `back` goes the other way by the same route. */
static void transpose_pencils(struct mini *mini, struct transpose *t, struct route *route,
                              int from, int to, bool back)
{
    int one = back ? to : from, two = back ? from : to;
    const int *counts = back ? route->back : route->counts;
    const int *places = back ? route->from : route->places;
    const int *arrives = back ? route->counts : route->back;
    const int *offsets = back ? route->places : route->from;
    struct wire *out = back ? &route->in : &route->out, *in = back ? &route->out : &route->in;
    struct box gives = other_box(t, one, mini->rank), taken = other_box(t, two, mini->rank);
    for (int r = 0; r < mini->size; r++)
        if (counts[r]) {
            struct box theirs = other_box(t, two, r);
            copy_common(t, &gives, &theirs, from, one, t->pencil[one], out->host + places[r],
                        true);
        }
    send_from(out, 0, (size_t)places[mini->size]);
    lap(mini, TRANSPOSE_PACK);
    OK(MPI_Alltoallv(out->mpi, counts, places, MPI_DOUBLE, in->mpi, arrives, offsets, MPI_DOUBLE,
                     mini->comm));
    lap(mini, TRANSPOSE_ALLTOALLV);
    arrived_at(in, 0, (size_t)offsets[mini->size]);
    memset(t->pencil[two], 0, box_volume(&taken) * sizeof **t->pencil);
    for (int r = 0; r < mini->size; r++)
        if (arrives[r]) {
            struct box theirs = other_box(t, one, r);
            copy_common(t, &taken, &theirs, from, two, t->pencil[two], in->host + offsets[r],
                        false);
        }
    lap(mini, TRANSPOSE_PACK);
}

/* ---- one iteration ---- */

static void transform(const struct transpose *t, int whole, const struct box *box, bool back)
{
    size_t columns = box_volume(box) / (size_t)t->extent[whole];
    for (size_t c = 0; c < columns; c++)
        fourier_transform(&t->plan[whole], t->pencil[whole] + c * (size_t)t->extent[whole], back);
}

/* A potential between 0.5 and 1.5 at each point of the grid. */
static void apply_potential(const struct mini *mini, const struct transpose *t)
{
    for (long long z = t->x.begin[Z]; z < t->x.end[Z]; z++)
        for (long long y = t->x.begin[Y]; y < t->x.end[Y]; y++)
            for (long long x = 0; x < t->extent[X]; x++) {
                uint64_t point = (uint64_t)((z * t->extent[Y] + y) * t->extent[X] + x);
                double factor = 1 + 0.5 * drawn(key_of(mini, 3, point));
                struct complex *value = &t->pencil[X][point_at(&t->x, X, x, y, z)];
                value->real *= factor;
                value->imaginary *= factor;
            }
}

/* What is outside of the sphere is left out, and what is in it divided by the number of points. */
static void keep_sphere(const struct transpose *t)
{
    double scale = 1 / ((double)t->extent[X] * (double)t->extent[Y] * (double)t->extent[Z]);
    for (long long y = t->z.begin[Y]; y < t->z.end[Y]; y++)
        for (long long x = t->z.begin[X]; x < t->z.end[X]; x++)
            for (long long z = 0; z < t->extent[Z]; z++) {
                struct complex *value = &t->pencil[Z][point_at(&t->z, Z, x, y, z)];
                double factor = in_sphere(t, x, y, z) ? scale : 0;
                value->real *= factor;
                value->imaginary *= factor;
            }
}

static void one_step(struct mini *mini, struct transpose *t)
{
    transform(t, Z, &t->z, true);
    lap(mini, TRANSPOSE_COMPUTE);
    transpose_pencils(mini, t, &t->zy, Z, Y, false);
    transform(t, Y, &t->y, true);
    lap(mini, TRANSPOSE_COMPUTE);
    transpose_pencils(mini, t, &t->yx, Y, X, false);
    transform(t, X, &t->x, true);
    if (!t->plain)
        apply_potential(mini, t);
    transform(t, X, &t->x, false);
    lap(mini, TRANSPOSE_COMPUTE);
    transpose_pencils(mini, t, &t->yx, Y, X, true);
    transform(t, Y, &t->y, false);
    lap(mini, TRANSPOSE_COMPUTE);
    transpose_pencils(mini, t, &t->zy, Z, Y, true);
    transform(t, Z, &t->z, false);
    keep_sphere(t);
    lap(mini, TRANSPOSE_COMPUTE);
}

/* ---- the mini-app ---- */

static struct transpose make_transpose(const struct mini *mini, const struct extents *whole)
{
    struct transpose t = {.steps = mini->options->steps ? mini->options->steps : 4};
    int parts[MOST_DIMENSIONS];
    struct extents plane = {2, {whole->of[X], whole->of[Y]}};
    divide_ranks(mini->size, &plane, parts);
    long long least = whole->of[X];
    for (int d = 0; d < 3; d++) {
        t.extent[d] = whole->of[d];
        least = least < whole->of[d] ? least : whole->of[d];
    }
    double radius = 0.005 * (double)mini->options->percent * (double)least;
    t.limit = radius * radius;
    t.grid[0] = parts[0];
    t.grid[1] = parts[1];
    t.z = other_box(&t, Z, mini->rank);
    t.y = other_box(&t, Y, mini->rank);
    t.x = other_box(&t, X, mini->rank);
    const struct box *boxes[] = {&t.x, &t.y, &t.z};
    for (int d = 0; d < 3; d++) {
        t.plan[d] = make_fourier((int)t.extent[d]);
        t.pencil[d] = need(box_volume(boxes[d]), sizeof **t.pencil);
    }
    t.start = need(box_volume(&t.z), sizeof *t.start);
    for (long long y = t.z.begin[Y]; y < t.z.end[Y]; y++)
        for (long long x = t.z.begin[X]; x < t.z.end[X]; x++)
            for (long long z = 0; z < t.extent[Z]; z++) {
                uint64_t point = (uint64_t)((z * t.extent[Y] + y) * t.extent[X] + x);
                if (in_sphere(&t, x, y, z))
                    t.start[point_at(&t.z, Z, x, y, z)] =
                        (struct complex){drawn(key_of(mini, 4, point)),
                                         drawn(key_of(mini, 5, point))};
            }
    t.zy = plan_route(mini, &t, Z, Y);
    t.yx = plan_route(mini, &t, Y, X);
    return t;
}

static void free_transpose(struct transpose *t)
{
    for (int d = 0; d < 3; d++) {
        free_fourier(&t->plan[d]);
        free(t->pencil[d]);
    }
    free(t->start);
    free_route(&t->zy);
    free_route(&t->yx);
}

static void *transpose_open(struct mini *mini)
{
    static const struct extents usual = {3, {32, 32, 32}};
    struct transpose *t = need(1, sizeof *t);
    struct extents whole = whole_extents(mini->options, &usual, mini->size);
    double points = (double)volume(&whole);
    if (points / mini->size > INT32_MAX / 4)
        DIE("transpose: %.3g points are more than %d ranks can count", points, mini->size);
    require_memory(mini, 140 * points / mini->size);
    *t = make_transpose(mini, &whole);
    return t;
}

static long transpose_run(struct mini *mini, void *state)
{
    struct transpose *t = state;
    memcpy(t->pencil[Z], t->start, box_volume(&t->z) * sizeof *t->start);
    for (long i = 0; i < t->steps; i++)
        one_step(mini, t);
    return t->steps;
}

static void transpose_close(void *state)
{
    free_transpose(state);
    free(state);
}

/* Whether two numbers of a coefficient are near. */
static bool alike(const struct mini *mini, const struct complex *got, const struct complex *due)
{
    if (!(distance(got->real, due->real) < 1e-9))
        return wrong(mini, "a coefficient", got->real, due->real);
    if (!(distance(got->imaginary, due->imaginary) < 1e-9))
        return wrong(mini, "a coefficient", got->imaginary, due->imaginary);
    return true;
}

/* There and back again without the potential: what comes back is what went, at any size. */
static bool comes_back(struct mini *mini, struct transpose *t)
{
    t->plain = true;
    transpose_run(mini, t);
    t->plain = false;
    bool right = true;
    for (size_t i = 0; i < box_volume(&t->z) && right; i++)
        right = alike(mini, &t->pencil[Z][i], &t->start[i]);
    return right;
}

/* Each rank computes the whole by itself, and compares its own part. */
static bool transpose_check(struct mini *mini, void *state)
{
    struct transpose *t = state;
    double points = (double)t->extent[X] * (double)t->extent[Y] * (double)t->extent[Z];
    if (points > mini->options->serial)
        return comes_back(mini, t);
    struct mini alone = *mini;
    alone.comm = MPI_COMM_SELF;
    alone.rank = 0;
    alone.size = 1;
    struct extents whole = {3, {t->extent[X], t->extent[Y], t->extent[Z]}};
    struct transpose serial = make_transpose(&alone, &whole);
    transpose_run(&alone, &serial);
    bool right = true;
    for (long long x = t->z.begin[X]; x < t->z.end[X] && right; x++)
        for (long long y = t->z.begin[Y]; y < t->z.end[Y] && right; y++)
            for (long long z = 0; z < t->extent[Z] && right; z++)
                right = alike(mini, &t->pencil[Z][point_at(&t->z, Z, x, y, z)],
                              &serial.pencil[Z][point_at(&serial.z, Z, x, y, z)]);
    free_transpose(&serial);
    bool back = comes_back(mini, t); /* all ranks take part, also those that were wrong */
    return right && back;
}

const struct app TRANSPOSE = {"transpose", TRANSPOSE_PARTS, TRANSPOSE_OPTIONS,
    transpose_open, transpose_run, transpose_check, transpose_close, false};
