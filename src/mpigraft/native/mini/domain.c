/* Particles of a periodic box that ranks divide, as GROMACS does: particles that cross a border
 * change their rank, and copies of those near a rank's lower borders go down, dimension by
 * dimension, in pulses: a pulse also forwards what came by the ones before. */
#include "mini.h"

long long number_of_all(const struct domain *d)
{
    return d->cells[0] * d->cells[1] * d->cells[2] * d->density;
}

/* ---- memory ---- */

void *resized(void *memory, size_t count, size_t bytes)
{
    void *made = realloc(memory, (count ? count : 1) * bytes);
    if (!made)
        DIE("out of memory: %zu x %zu bytes", count, bytes);
    return made;
}

static void reserve(struct domain *d, int particles)
{
    if (particles <= d->room)
        return;
    d->room = particles + particles / 2 + 64;
    double **vectors[] = {&d->x, &d->v, &d->f, &d->origin};
    for (int i = 0; i < 4; i++)
        *vectors[i] = resized(*vectors[i], 3 * (size_t)d->room, sizeof(double));
    d->charge = resized(d->charge, (size_t)d->room, sizeof *d->charge);
    d->id = resized(d->id, (size_t)d->room, sizeof *d->id);
    d->zone = resized(d->zone, (size_t)d->room, sizeof *d->zone);
}

void reserve_wire(const struct mini *mini, struct wire *wire, int values)
{
    if ((size_t)values <= wire->count)
        return;
    free_wire(wire);
    *wire = make_wire(mini, (size_t)values + (size_t)values / 2);
}

void free_domain(struct domain *d)
{
    void *memory[] = {d->x, d->v, d->f, d->origin, d->charge, d->id, d->zone};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
    for (int k = 0; k < d->pulses; k++)
        free(d->pulse[k].list);
    free(d->pulse);
    free_wire(&d->out);
    free_wire(&d->in);
}

/* ---- making ---- */

/* Enough pulses that ranks whose part is the narrowest get all within reach. */
static void plan_pulses(struct domain *d)
{
    for (int dim = 2; dim >= 0; dim--) {
        double narrowest = (double)(d->cells[dim] / d->parts[dim]);
        for (int k = 0; d->parts[dim] > 1 && k * narrowest < d->reach; k++) {
            d->pulse = resized(d->pulse, (size_t)d->pulses + 1, sizeof *d->pulse);
            d->pulse[d->pulses++] =
                (struct pulse){.dimension = dim, .shift = d->at[dim] ? 0 : d->edge[dim]};
        }
    }
}

static void check_domain(const struct domain *d, int ranks)
{
    for (int dim = 0; dim < 3; dim++) {
        if (d->cells[dim] < d->parts[dim])
            DIE("particles: %lld cells along an edge are fewer than the %d ranks there, of %d; use "
                "fewer ranks, or a larger --size or --local", d->cells[dim], d->parts[dim], ranks);
        if (d->edge[dim] < 2 * d->reach)
            DIE("particles: %lld cells along an edge are fewer than twice the reach of pairs, %g; "
                "use a larger --size or --local, or a smaller --depth or --every", d->cells[dim],
                d->reach);
    }
}

struct domain make_domain(const struct mini *mini, const struct extents *whole,
                          MPI_Comm comm, int rank, int ranks)
{
    struct domain d = {.comm = comm, .density = (int)mini->options->density};
    int parts[MOST_DIMENSIONS], stride = 1;
    const double step = 0.01, speed = 2; /* which no particle has on the way from start to end */
    d.drift = (double)mini->options->every * step * speed;
    d.reach = (double)mini->options->depth + 2 * d.drift;
    divide_ranks(ranks, whole, parts);
    for (int dim = 0; dim < 3; dim++) {
        int at = rank / stride % parts[dim];
        d.parts[dim] = parts[dim];
        d.at[dim] = at;
        d.down[dim] = rank + ((at + parts[dim] - 1) % parts[dim] - at) * stride;
        d.up[dim] = rank + ((at + 1) % parts[dim] - at) * stride;
        d.cells[dim] = whole->of[dim];
        d.edge[dim] = (double)whole->of[dim];
        d.begin[dim] = part_begins(whole->of[dim], parts[dim], at);
        d.end[dim] = part_begins(whole->of[dim], parts[dim], at + 1);
        d.low[dim] = (double)d.begin[dim];
        d.high[dim] = (double)d.end[dim];
        stride *= parts[dim];
    }
    check_domain(&d, ranks);
    plan_pulses(&d);
    d.out = make_wire(mini, 0);
    d.in = make_wire(mini, 0);
    return d;
}

/* Where a particle begins, and how fast: the same on every rank. */
void first_state(const struct mini *mini, const struct domain *d, long long id, double *x,
                 double *v)
{
    long long rest = id / d->density;
    for (int dim = 0; dim < 3; dim++) {
        uint64_t key = (uint64_t)id * 3 + (uint64_t)dim;
        x[dim] = (double)(rest % d->cells[dim]) + 0.5 + 0.49 * drawn(key_of(mini, 9, key));
        v[dim] = 0.5 * drawn(key_of(mini, 10, key));
        rest /= d->cells[dim];
    }
}

void start_domain(const struct mini *mini, struct domain *d)
{
    d->home = 0;
    for (long long z = d->begin[2]; z < d->end[2]; z++)
        for (long long y = d->begin[1]; y < d->end[1]; y++)
            for (long long x = d->begin[0]; x < d->end[0]; x++)
                for (int k = 0; k < d->density; k++) {
                    long long cell = (z * d->cells[1] + y) * d->cells[0] + x;
                    reserve(d, d->home + 1);
                    int i = d->home++;
                    d->id[i] = (int)(cell * d->density + k);
                    d->charge[i] = d->id[i] % 2 ? -1 : 1;
                    first_state(mini, d, d->id[i], &d->x[3 * i], &d->v[3 * i]);
                }
}

/* ---- messages ---- */

static int swap_counts(const struct domain *d, int to, int gives, int from)
{
    int takes;
    OK(MPI_Sendrecv(&gives, 1, MPI_INT, to, HALO_TAG, &takes, 1, MPI_INT, from, HALO_TAG, d->comm,
                    MPI_STATUS_IGNORE));
    return takes;
}

/* Send what `out` begins with to one rank, and receive of another what `in` begins with. */
static void swap_values(struct domain *d, int to, int gives, int from, int takes)
{
    MPI_Request request[2];
    OK(MPI_Irecv(d->in.mpi, takes, MPI_DOUBLE, from, HALO_TAG + 1, d->comm, &request[0]));
    send_from(&d->out, 0, (size_t)gives);
    OK(MPI_Isend(d->out.mpi, gives, MPI_DOUBLE, to, HALO_TAG + 1, d->comm, &request[1]));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    arrived_at(&d->in, 0, (size_t)takes);
}

/* ---- migration ---- */

static void store_record(struct domain *d, int i, const double *record)
{
    memcpy(&d->x[3 * i], record, 3 * sizeof *record);
    memcpy(&d->v[3 * i], record + 3, 3 * sizeof *record);
    d->id[i] = (int)record[6];
    d->charge[i] = record[7];
}

static void load_record(const struct domain *d, int i, double *record)
{
    memcpy(record, &d->x[3 * i], 3 * sizeof *record);
    memcpy(record + 3, &d->v[3 * i], 3 * sizeof *record);
    record[6] = d->id[i];
    record[7] = d->charge[i];
}

/* Into the box; a sum that is rounded to its end stays within. */
static double wrapped(double x, double edge)
{
    if (x >= edge)
        return x - edge;
    if (x < 0)
        x += edge;
    return x < edge ? x : edge - edge * 0x1p-53;
}

/* Give away those beyond one border, and take the neighbour's. */
static void cross_border(const struct mini *mini, struct domain *d, int dim, bool downwards)
{
    double border = downwards ? d->low[dim] : d->high[dim], record[RECORD];
    int kept = 0, gives = 0;
    for (int i = 0; i < d->home; i++)
        gives += downwards == (d->x[3 * i + dim] < border);
    reserve_wire(mini, &d->out, gives * RECORD);
    gives = 0;
    for (int i = 0; i < d->home; i++) {
        bool goes = downwards == (d->x[3 * i + dim] < border);
        load_record(d, i, goes ? &d->out.host[gives * RECORD] : record);
        if (goes) {
            double *x = &d->out.host[gives++ * RECORD + dim];
            *x = wrapped(*x, d->edge[dim]);
        } else {
            store_record(d, kept++, record);
        }
    }
    int to = downwards ? d->down[dim] : d->up[dim], from = downwards ? d->up[dim] : d->down[dim];
    int takes = swap_counts(d, to, gives, from);
    reserve_wire(mini, &d->in, takes * RECORD);
    reserve(d, kept + takes);
    swap_values(d, to, gives * RECORD, from, takes * RECORD);
    for (int i = 0; i < takes; i++)
        store_record(d, kept + i, &d->in.host[i * RECORD]);
    d->home = kept + takes;
}

static void check_places(const struct domain *d)
{
    for (int i = 0; i < d->home; i++)
        for (int dim = 0; dim < 3; dim++) {
            double x = d->x[3 * i + dim];
            if (!(x >= d->low[dim] && x < d->high[dim]))
                DIE("particles: particle %d at %g is beyond the next rank's part, from %g to %g; "
                    "use a smaller --every", d->id[i], x, d->low[dim], d->high[dim]);
        }
}

static void check_drift(const struct domain *d)
{
    for (int i = 0; i < d->home; i++)
        for (int dim = 0; dim < 3; dim++)
            if (!(distance(d->x[3 * i + dim], d->origin[3 * i + dim]) <= d->drift))
                DIE("particles: particle %d moved by more than %g cells from one migration to the "
                    "next; use a smaller --density", d->id[i], d->drift);
}

void migrate(const struct mini *mini, struct domain *d)
{
    check_drift(d);
    for (int dim = 2; dim >= 0; dim--) {
        for (int i = 0; i < d->home && d->parts[dim] == 1; i++)
            d->x[3 * i + dim] = wrapped(d->x[3 * i + dim], d->edge[dim]);
        for (int side = 0; side < 2 && d->parts[dim] > 1; side++)
            cross_border(mini, d, dim, side == 0);
    }
    check_places(d);
}

/* ---- halos ---- */

static void choose_particles(struct domain *d, struct pulse *pulse, int first, int last)
{
    int dim = pulse->dimension;
    pulse->list = resized(pulse->list, (size_t)(last - first), sizeof *pulse->list);
    pulse->gives = 0;
    for (int i = first; i < last; i++)
        if (d->x[3 * i + dim] < d->low[dim] + d->reach)
            pulse->list[pulse->gives++] = i;
}

static void pack_positions(const struct domain *d, const struct pulse *pulse, int width)
{
    for (int i = 0; i < pulse->gives; i++) {
        double *to = &d->out.host[i * width];
        memcpy(to, &d->x[3 * pulse->list[i]], 3 * sizeof *to);
        to[pulse->dimension] += pulse->shift;
        if (width == HALO_RECORD)
            to[3] = d->id[pulse->list[i]];
    }
}

static void store_ghost(struct domain *d, int i, const double *record)
{
    memcpy(&d->x[3 * i], record, 3 * sizeof *record);
    d->id[i] = (int)record[3];
    d->zone[i] = 0;
    for (int dim = 0; dim < 3; dim++)
        d->zone[i] |= (unsigned char)((d->parts[dim] > 1 && record[dim] >= d->high[dim]) << dim);
}

/* Which particles go where until the next migration; the ghosts of now arrive at once. */
void choose_halo(const struct mini *mini, struct domain *d)
{
    d->all = d->home;
    memset(d->zone, 0, (size_t)d->home);
    for (int k = 0; k < d->pulses; k++) {
        struct pulse *pulse = &d->pulse[k];
        int dim = pulse->dimension;
        bool forwards = k && d->pulse[k - 1].dimension == dim;
        choose_particles(d, pulse, forwards ? d->pulse[k - 1].ghost : 0, d->all);
        pulse->takes = swap_counts(d, d->down[dim], pulse->gives, d->up[dim]);
        pulse->ghost = d->all;
        int most = pulse->gives > pulse->takes ? pulse->gives : pulse->takes;
        reserve_wire(mini, &d->out, most * HALO_RECORD);
        reserve_wire(mini, &d->in, most * HALO_RECORD);
        reserve(d, d->all + pulse->takes);
        pack_positions(d, pulse, HALO_RECORD);
        swap_values(d, d->down[dim], pulse->gives * HALO_RECORD, d->up[dim],
                    pulse->takes * HALO_RECORD);
        for (int i = 0; i < pulse->takes; i++)
            store_ghost(d, d->all++, &d->in.host[i * HALO_RECORD]);
    }
    memcpy(d->origin, d->x, 3 * (size_t)d->home * sizeof *d->x);
}

void exchange_positions(struct domain *d)
{
    for (int k = 0; k < d->pulses; k++) {
        const struct pulse *pulse = &d->pulse[k];
        int dim = pulse->dimension;
        pack_positions(d, pulse, 3);
        swap_values(d, d->down[dim], 3 * pulse->gives, d->up[dim], 3 * pulse->takes);
        memcpy(&d->x[3 * pulse->ghost], d->in.host, 3 * (size_t)pulse->takes * sizeof *d->x);
    }
}

/* What acts on ghosts goes back the way that they came. */
void return_forces(struct domain *d)
{
    for (int k = d->pulses - 1; k >= 0; k--) {
        const struct pulse *pulse = &d->pulse[k];
        int dim = pulse->dimension;
        memcpy(d->out.host, &d->f[3 * pulse->ghost], 3 * (size_t)pulse->takes * sizeof *d->f);
        swap_values(d, d->up[dim], 3 * pulse->takes, d->down[dim], 3 * pulse->gives);
        for (int i = 0; i < 3 * pulse->gives; i++)
            d->f[3 * pulse->list[i / 3] + i % 3] += d->in.host[i];
    }
}
