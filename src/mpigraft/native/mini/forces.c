/* Forces between particles: of pairs within a cutoff, by a list of all within reach; and of waves
 * that are as long as the box. */
#include "mini.h"

/* Particles in boxes whose edges are the reach or more: pairs are in boxes that touch. */
struct boxes {
    int count[3], *start, *order;
    double low[3], edge[3];
    bool around[3]; /* whether the last meets the first */
};

static int box_along(const struct boxes *boxes, int dim, double x)
{
    int at = (int)((x - boxes->low[dim]) / boxes->edge[dim]);
    return at < 0 ? 0 : at >= boxes->count[dim] ? boxes->count[dim] - 1 : at;
}

static int box_index(const struct boxes *boxes, const double *x)
{
    int box = 0;
    for (int dim = 2; dim >= 0; dim--)
        box = box * boxes->count[dim] + box_along(boxes, dim, x[dim]);
    return box;
}

static struct boxes sort_into_boxes(const struct domain *d)
{
    struct boxes boxes = {.start = NULL};
    size_t all = 1;
    for (int dim = 0; dim < 3; dim++) {
        bool whole = d->parts[dim] == 1;
        double extent = whole ? d->edge[dim] : d->high[dim] - d->low[dim] + d->reach;
        int count = (int)(extent / d->reach);
        boxes.around[dim] = whole && count > 2; /* of fewer, both neighbours would be the same */
        boxes.count[dim] = count < 1 || (whole && count < 3) ? 1 : count;
        boxes.low[dim] = d->low[dim];
        boxes.edge[dim] = extent / boxes.count[dim];
        all *= (size_t)boxes.count[dim];
    }
    boxes.start = need(all + 1, sizeof *boxes.start);
    boxes.order = need((size_t)d->all, sizeof *boxes.order);
    for (int i = 0; i < d->all; i++)
        boxes.start[box_index(&boxes, &d->x[3 * i])]++;
    for (size_t b = 0, sum = 0; b <= all; b++) /* ends, from which places are taken downwards */
        boxes.start[b] = (int)(sum += (size_t)(b < all ? boxes.start[b] : 0));
    for (int i = d->all - 1; i >= 0; i--)
        boxes.order[--boxes.start[box_index(&boxes, &d->x[3 * i])]] = i;
    return boxes;
}

/* The nearest image, in dimensions that one rank has whole; elsewhere ghosts are the images. */
static double square_apart(const struct domain *d, int i, int j, double *apart)
{
    double square = 0;
    for (int dim = 0; dim < 3; dim++) {
        double a = d->x[3 * i + dim] - d->x[3 * j + dim], edge = d->edge[dim];
        if (d->parts[dim] == 1)
            a = a > edge / 2 ? a - edge : a < -edge / 2 ? a + edge : a;
        apart[dim] = a;
        square += a * a;
    }
    return square;
}

/* A pair belongs to the rank that is the lowest of both particles' in each dimension: none of both
 * is a ghost there in a dimension in which the other is one too. */
static size_t add_box(const struct domain *d, struct pair_list *list, const struct boxes *boxes,
                      int i, int box, size_t made)
{
    double apart[3];
    for (int k = boxes->start[box]; k < boxes->start[box + 1]; k++) {
        int j = boxes->order[k];
        if (j <= i || (d->zone[i] & d->zone[j]) ||
            !(square_apart(d, i, j, apart) < d->reach * d->reach))
            continue;
        if (made == list->room) {
            list->room = 2 * list->room + 1024;
            if (list->room > INT32_MAX)
                DIE("particles: one rank has too many pairs; use more ranks");
            list->other = resized(list->other, list->room, sizeof *list->other);
        }
        list->other[made++] = j;
    }
    return made;
}

void list_pairs(const struct domain *d, struct pair_list *list)
{
    struct boxes boxes = sort_into_boxes(d);
    size_t made = 0;
    list->first = resized(list->first, (size_t)d->all + 1, sizeof *list->first);
    for (int i = 0; i < d->all; i++) {
        list->first[i] = (int)made;
        for (int n = 0; n < 27; n++) {
            int step[] = {n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1}, box = 0;
            bool is_there = true;
            for (int dim = 2; dim >= 0; dim--) {
                int count = boxes.count[dim];
                int at = box_along(&boxes, dim, d->x[3 * i + dim]) + step[dim];
                is_there &= boxes.around[dim] || (at >= 0 && at < count);
                box = box * count + (at + count) % count;
            }
            if (is_there)
                made = add_box(d, list, &boxes, i, box, made);
        }
    }
    list->first[d->all] = (int)made;
    free(boxes.start);
    free(boxes.order);
}

/* A soft repulsion, (1 - (r / cutoff)^2)^2. Returns the energy. */
double add_pair_forces(const struct domain *d, const struct pair_list *list, double cutoff)
{
    const double strength = 0.1, per_square = 1 / (cutoff * cutoff);
    double energy = 0;
    for (int i = 0; i < d->all; i++)
        for (int k = list->first[i]; k < list->first[i + 1]; k++) {
            int j = list->other[k];
            double apart[3], rest = 1 - square_apart(d, i, j, apart) * per_square;
            if (!(rest > 0))
                continue;
            energy += strength * rest * rest;
            for (int dim = 0; dim < 3; dim++) {
                double force = 4 * strength * per_square * rest * apart[dim];
                d->f[3 * i + dim] += force;
                d->f[3 * j + dim] -= force;
            }
        }
    return energy;
}

/* ---- waves: the long-range part of an Ewald sum ---- */

static const double TURN = 6.28318530717958647692;

/* One of each wave and its opposite. */
struct waves make_waves(const double *edge)
{
    struct waves waves;
    for (int w = 0; w < WAVES; w++) {
        int rest = w + WAVES + 1;
        double square = 0;
        for (int dim = 0; dim < 3; dim++) {
            waves.mode[w][dim] = rest % TURNS - MODES;
            rest /= TURNS;
            double k = TURN * waves.mode[w][dim] / edge[dim];
            square += k * k;
        }
        waves.weight[w] = 1 / (edge[0] * edge[1] * edge[2] * square);
    }
    return waves;
}

/* exp(i n k x) of each dimension, n from -MODES to MODES. */
static void turn_particle(const double *x, const double *edge, struct complex turns[3][TURNS])
{
    for (int dim = 0; dim < 3; dim++) {
        double part = x[dim] / edge[dim];
        part -= part < 0 ? -1 : part >= 1 ? 1 : 0;
        int quarter = (int)(4 * part);
        struct complex t = turned(4 * part - quarter);
        struct complex by_quarter[] = {t, {-t.imaginary, t.real}, {-t.real, -t.imaginary},
                                       {t.imaginary, -t.real}};
        struct complex one = by_quarter[quarter % 4], power = {1, 0};
        for (int n = 0; n <= MODES; n++) {
            turns[dim][MODES + n] = power;
            turns[dim][MODES - n] = (struct complex){power.real, -power.imaginary};
            power = (struct complex){power.real * one.real - power.imaginary * one.imaginary,
                                     power.real * one.imaginary + power.imaginary * one.real};
        }
    }
}

static struct complex wave_at(const int *mode, struct complex turns[3][TURNS])
{
    struct complex product = {1, 0};
    for (int dim = 0; dim < 3; dim++) {
        struct complex t = turns[dim][MODES + mode[dim]];
        product = (struct complex){product.real * t.real - product.imaginary * t.imaginary,
                                   product.real * t.imaginary + product.imaginary * t.real};
    }
    return product;
}

/* The charges of `count` particles as the waves see them, into 2 * WAVES sums. */
void add_charges(const struct waves *waves, const double *edge, const double *x,
                 const double *charge, int count, double *sums)
{
    struct complex turns[3][TURNS];
    for (int i = 0; i < count; i++) {
        turn_particle(&x[3 * i], edge, turns);
        for (int w = 0; w < WAVES; w++) {
            struct complex here = wave_at(waves->mode[w], turns);
            sums[2 * w] += charge[i] * here.real;
            sums[2 * w + 1] += charge[i] * here.imaginary;
        }
    }
}

void add_wave_forces(const struct waves *waves, const double *edge, const double *x,
                     const double *charge, int count, const double *sums, double *f)
{
    struct complex turns[3][TURNS];
    for (int i = 0; i < count; i++) {
        turn_particle(&x[3 * i], edge, turns);
        for (int w = 0; w < WAVES; w++) {
            struct complex here = wave_at(waves->mode[w], turns);
            double across = sums[2 * w] * here.imaginary - sums[2 * w + 1] * here.real;
            for (int dim = 0; dim < 3; dim++)
                f[3 * i + dim] += 2 * waves->weight[w] * charge[i] * across * TURN *
                                  waves->mode[w][dim] / edge[dim];
        }
    }
}

double wave_energy(const struct waves *waves, const double *sums)
{
    double energy = 0;
    for (int w = 0; w < WAVES; w++)
        energy += waves->weight[w] *
                  (sums[2 * w] * sums[2 * w] + sums[2 * w + 1] * sums[2 * w + 1]);
    return energy;
}
