/* The one loop: batches until the budget of this size is spent.
 *
 * Rank 0 decides how long a batch is and how many there are, and tells the others.
 */
#ifndef MPIGRAFT_MEASURE_H
#define MPIGRAFT_MEASURE_H

#include <math.h>

#include "batch.h"
#include "buffers.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "message.h"
#include "overlap.h"
#include "run.h"
#include "../common/statistics.h"

/* Warm up: `--warmup` iterations, each checked by itself, then batches until a tenth of the
 * budget has passed. At the first size it is a quarter: libraries were seen to take a thousand
 * messages, a millisecond, to reach their speed (connections, adaptive paths, clock rates). */
static void warm_up(struct run *run, bool first)
{
    double deadline = now() + (first ? 0.25e-3 : 0.1e-3) * run->options->budget;
    for (long i = 0; i < run->options->warmup; i++) {
        if (told_by_rank_0(run, i > 0 && now() > deadline))
            return;
        run_batch(run, 1);
    }
    if (!run->options->warmup)
        return;
    for (long n = 2; !told_by_rank_0(run, now() > deadline); n += n < 1024 ? n : 0)
        run_batch(run, n);
}

/* The shortest of a few tries, as rank 0 saw it. One that is short enough ends them: an
 * interruption makes a batch longer, never shorter, and must not be taken for a slow operation.
 * It may hit the preparation of one try and the iterations of another, so each has its own. */
static struct timed try_batch(struct run *run, long iterations, int tries, double enough)
{
    struct timed best = run_batch(run, iterations);
    for (int i = 1; i < tries && told_by_rank_0(run, best.clock >= enough); i++) {
        struct timed again = run_batch(run, iterations);
        double overhead = smaller(best.wall - best.clock, again.wall - again.clock);
        best.clock = smaller(best.clock, again.clock);
        best.wall = best.clock + overhead;
    }
    OK(MPI_Bcast(&best, 2, MPI_DOUBLE, 0, run->comm)); /* all ranks must decide alike */
    return best;
}

/* Whether a batch is too short: for the clock, or because its start (ranks leave a barrier one
 * after the other, caches hold what was checked) or an interruption costs as much as the
 * iterations. The latter shows in that longer batches take less than three quarters of the time
 * for an iteration. With more ranks than cores every short batch may be interrupted, so longer and
 * longer ones are tried. */
static bool too_short(struct run *run, long batch, struct timed timed, double enough)
{
    if (timed.clock < enough)
        return true;
    bool brief = timed.clock < SLICE;
    int tries = brief ? TRIES : 1;
    for (long times = 2; times <= (brief ? 2 : FARTHEST); times *= 2) {
        double as_slow = (double)times * timed.clock;
        if (!brief && as_slow > PATIENCE * 1e-3 * run->options->budget)
            return false;
        if (try_batch(run, times * batch, tries, 0.75 * as_slow).clock < 0.75 * as_slow)
            return true;
    }
    return false;
}

/* How the budget is divided where `least` iterations took `timed`: at most half of it goes into
 * what is not timed, if the samples are enough then. */
static struct schedule divide_budget(const struct options *options, long least, struct timed timed)
{
    double each = larger(timed.clock / (double)least, 1e-12), overhead = timed.wall - timed.clock;
    double budget = 1e-3 * options->budget, most = (double)options->samples;
    bool is_long = LEAST_SAMPLES * timed.wall > LONG * budget;
    double fewest = is_long ? LEAST_LONG : LEAST_SAMPLES;
    double samples = smaller(most, larger(fewest, budget / (2 * overhead)));
    double batch = (budget / samples - overhead) / each;
    if (batch < (double)least)
        samples = smaller(most, larger(fewest, budget / timed.wall));
    batch = smaller(MOST_BATCH, larger((double)least, batch));
    return (struct schedule){(long)batch, (long)samples};
}

/* `--iterations` in batches of `least` or more. */
static struct schedule divide_iterations(const struct options *options, long least)
{
    long batch = (long)((options->iterations + options->samples - 1) / options->samples);
    batch = batch > least ? batch : least;
    return (struct schedule){batch, (long)((options->iterations + batch - 1) / batch)};
}

/* Double the batch until neither clock nor start matter, then divide what is to be measured. */
static struct schedule make_schedule(struct run *run, struct clock clock)
{
    long least = 1;
    double enough = CLOCK_STEPS * coarseness(clock);
    OK(MPI_Bcast(&enough, 1, MPI_DOUBLE, 0, run->comm));
    struct timed timed = try_batch(run, least, TRIES, enough);
    while (told_by_rank_0(run, too_short(run, least, timed, enough) && least < MOST_BATCH)) {
        least *= 2;
        timed = try_batch(run, least, TRIES, enough);
    }
    struct schedule schedule = run->options->iterations ? divide_iterations(run->options, least)
                                                        : divide_budget(run->options, least, timed);
    OK(MPI_Bcast(&schedule, 2, MPI_LONG, 0, run->comm));
    return schedule;
}

/* One figure per sample out of those of all ranks: the slowest rank for a collective or a
 * rate, the mean of the pairs for multi_lat, rank 0 for one pair. OSU takes the mean always. */
static void reduce_samples(struct run *run, double *samples, struct result *result)
{
    bool mean = like_osu(run) || (run->benchmark->ranks == PAIRS &&
                                  run->benchmark->metric == LATENCY);
    bool counts = run->benchmark->ranks == EVERYONE || run->leads;
    double own = 0, none = 0;
    for (int i = 0; i < result->count; i++)
        own += samples[i] / result->count;
    for (int i = 0; i < result->count && !counts; i++)
        samples[i] = 0;
    OK(MPI_Reduce(samples, result->samples, result->count, MPI_DOUBLE, mean ? MPI_SUM : MPI_MAX, 0,
                  run->comm));
    int ranks = run->benchmark->ranks == EVERYONE ? run->size : run->size / 2;
    for (int i = 0; i < result->count && mean; i++)
        result->samples[i] /= ranks;
    double least = counts ? own : INFINITY;
    OK(MPI_Reduce(counts ? &own : &none, &result->rank_mean, 1, MPI_DOUBLE, MPI_SUM, 0, run->comm));
    OK(MPI_Reduce(counts ? &own : &none, &result->rank_max, 1, MPI_DOUBLE, MPI_MAX, 0, run->comm));
    OK(MPI_Reduce(&least, &result->rank_min, 1, MPI_DOUBLE, MPI_MIN, 0, run->comm));
    result->rank_mean /= ranks;
}

/* Whether the median is far from the shortest. */
static bool scattered(const double *samples, int count)
{
    double least = samples[0];
    for (int i = 1; i < count; i++)
        least = smaller(least, samples[i]);
    return median_of(samples, count) > SCATTERED * least;
}

/* Whether the schedule came of a disturbed moment, or the samples did: batches turned out too
 * short for the clock, most of the budget is left, or the median is far from the shortest. Rank
 * 0's view counts. */
static bool misjudged(const struct run *run, const struct result *result, const double *samples,
                      struct clock clock, double spent)
{
    double batch = median_of(samples, result->count) * (double)result->batch;
    bool early = !run->options->iterations && result->count < run->options->samples &&
                 spent < 0.25e-3 * run->options->budget;
    return early || scattered(samples, result->count) ||
           (batch < 0.5 * CLOCK_STEPS * coarseness(clock) && result->batch < MOST_BATCH);
}

/* Measure one size. `result->samples` has room for options->samples. */
static void measure_size(struct run *run, size_t bytes, struct clock clock, bool first,
                         struct result *result)
{
    set_up(run, bytes);
    warm_up(run, first);
    double *samples = need((size_t)run->options->samples, sizeof *samples);
    result->size = bytes;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        struct schedule schedule = make_schedule(run, clock);
        double begin = now();
        result->batch = schedule.batch;
        result->count = take_samples(run, schedule, samples);
        if (!told_by_rank_0(run, misjudged(run, result, samples, clock, now() - begin)))
            break;
    }
    reduce_samples(run, samples, result);
    if (has(run, OVERLAPS))
        measure_overlap(run, samples, result);
    result->resolution = clock.resolution / (double)result->batch;
    int valid = run->valid;
    OK(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_LAND, run->comm));
    result->checked = !run->options->no_validate && !has(run, SIZELESS);
    result->valid = valid;
    free(samples);
    tear_down(run);
}

#endif
