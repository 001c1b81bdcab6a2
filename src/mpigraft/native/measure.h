/* The one loop: prepare, time a batch, check; until the budget of this size is spent.
 *
 * A sample is the mean of a batch, because reading the clock costs as much as a small message.
 * Rank 0 decides how long a batch is and how many there are, and tells the others.
 */
#ifndef MPIGRAFT_MEASURE_H
#define MPIGRAFT_MEASURE_H

#include <math.h>
#include <time.h>

#include "benchmarks.h"
#include "buffers.h"
#include "check.h"
#include "message.h"
#include "run.h"
#include "statistics.h"

enum {
    CLOCK_COSTS = 100, /* a batch is at least this many readings of the clock long */
    LEAST_SAMPLES = 5, /* however slow an iteration is */
    TRIES = 3,         /* before an operation is believed to be slow, a schedule to be good */
    CHUNKS = 8,        /* the budget is looked at so many times */
    MOST_BATCH = 1 << 22,
};

/* The kernel's clock for every MPI: MPI_Wtime differs from one to the other in cost and in
 * resolution, and that is not what is compared here. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double clock_cost(void)
{
    enum { READINGS = 10000 };
    double begin = now(), end = begin;
    for (int i = 0; i < READINGS; i++)
        end = now();
    return (end - begin) / READINGS;
}

/* What one size of one benchmark gave, on rank 0. `samples` are seconds per iteration. */
struct result {
    size_t size;
    double *samples;
    int count;
    long batch;
    bool checked, valid;
    double rank_mean, rank_min, rank_max; /* over ranks of their means, seconds per iteration */
};

struct timed {
    double clock; /* seconds of the iterations alone */
    double wall;  /* with preparation and check */
};

static struct timed run_batch(struct run *run, long iterations)
{
    bool validate = !run->options->no_validate && !has(run, SIZELESS);
    double entered = now();
    if (validate || run->round == 0)
        prepare(run);
    OK(MPI_Barrier(run->comm));
    double begin = now();
    for (long i = 0; i < iterations; i++)
        run->benchmark->iterate(run, i);
    double end = now();
    if (validate)
        check(run, iterations);
    return (struct timed){end - begin, now() - entered};
}

static long told_by_rank_0(const struct run *run, long value)
{
    OK(MPI_Bcast(&value, 1, MPI_LONG, 0, run->comm));
    return value;
}

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

struct schedule {
    long batch; /* iterations per sample */
    long samples;
};

/* The shortest of a few tries, as rank 0 saw it. One that is short enough ends them: an
 * interruption makes a batch longer, never shorter, and must not be taken for a slow operation. */
static struct timed try_batch(struct run *run, long iterations, double enough)
{
    struct timed best = run_batch(run, iterations);
    for (int i = 1; i < TRIES && told_by_rank_0(run, best.clock >= enough); i++) {
        struct timed again = run_batch(run, iterations);
        best = again.clock < best.clock ? again : best;
    }
    OK(MPI_Bcast(&best, 2, MPI_DOUBLE, 0, run->comm)); /* all ranks must decide alike */
    return best;
}

/* Whether a batch is too short: for the clock, or because the start of a batch (ranks leave a
 * barrier one after the other, caches hold what was checked) costs as much as the iterations.
 * The latter shows in that twice as many take less than 1.5 times as long. */
static bool too_short(struct run *run, long batch, struct timed timed, double enough)
{
    if (timed.clock < enough)
        return true;
    if (timed.clock > 20 * enough)
        return false;
    return try_batch(run, 2 * batch, enough).clock < 1.5 * timed.clock;
}

/* Double the batch until neither clock nor start matter, then divide the budget. */
static struct schedule make_schedule(struct run *run, double clock)
{
    const struct options *options = run->options;
    long least = 1;
    double enough = CLOCK_COSTS * clock;
    OK(MPI_Bcast(&enough, 1, MPI_DOUBLE, 0, run->comm));
    struct timed timed = try_batch(run, least, enough);
    while (told_by_rank_0(run, too_short(run, least, timed, enough) && least < MOST_BATCH)) {
        least *= 2;
        timed = try_batch(run, least, enough);
    }
    double each = timed.clock / (double)least, overhead = timed.wall - timed.clock;
    double budget = 1e-3 * options->budget, most = (double)options->samples;
    struct schedule schedule = {least, options->samples};
    if (options->iterations) {
        long batch = (long)((options->iterations + options->samples - 1) / options->samples);
        schedule.batch = batch > least ? batch : least;
        schedule.samples = (long)((options->iterations + schedule.batch - 1) / schedule.batch);
    } else if (most * timed.wall < budget) {
        double batch = (budget / most - overhead) / (each > 1e-12 ? each : 1e-12);
        schedule.batch = batch < MOST_BATCH ? (long)batch : MOST_BATCH;
    } else {
        double samples = budget / timed.wall;
        schedule.samples = samples > LEAST_SAMPLES ? (long)samples : LEAST_SAMPLES;
    }
    if (schedule.samples > options->samples)
        schedule.samples = options->samples;
    if (schedule.batch < least)
        schedule.batch = least;
    OK(MPI_Bcast(&schedule, 2, MPI_LONG, 0, run->comm));
    return schedule;
}

/* Time the batches; returns how many were done. Stops early when others' noise made them
 * much longer than planned. */
static int take_samples(struct run *run, struct schedule schedule, double *samples)
{
    double deadline = now() + 1.25e-3 * run->options->budget;
    long chunk = (schedule.samples + CHUNKS - 1) / CHUNKS, done = 0;
    while (done < schedule.samples) {
        for (long i = 0; i < chunk && done < schedule.samples; i++)
            samples[done++] = run_batch(run, schedule.batch).clock / (double)schedule.batch;
        bool late = !run->options->iterations && done >= LEAST_SAMPLES && now() > deadline;
        if (told_by_rank_0(run, late))
            break;
    }
    return (int)done;
}

/* One figure per sample out of those of all ranks: the slowest rank for a collective or a
 * rate, the mean of the pairs for multi_lat, rank 0 for one pair. */
static void reduce_samples(struct run *run, double *samples, struct result *result)
{
    bool mean = run->benchmark->ranks == PAIRS && run->benchmark->metric == LATENCY;
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

/* Whether the schedule came of a disturbed moment: batches turned out too short for the clock,
 * or most of the budget is left. Rank 0's view counts. */
static bool misjudged(const struct run *run, const struct result *result, const double *samples,
                      double clock, double spent)
{
    double batch = median_of(samples, result->count) * (double)result->batch;
    bool early = !run->options->iterations && result->count < run->options->samples &&
                 spent < 0.25e-3 * run->options->budget;
    return early || (batch < 0.5 * CLOCK_COSTS * clock && result->batch < MOST_BATCH);
}

/* Measure one size. `result->samples` has room for options->samples. */
static void measure_size(struct run *run, size_t bytes, double clock, bool first,
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
    int valid = run->valid;
    OK(MPI_Allreduce(MPI_IN_PLACE, &valid, 1, MPI_INT, MPI_LAND, run->comm));
    result->checked = !run->options->no_validate && !has(run, SIZELESS);
    result->valid = valid;
    free(samples);
    tear_down(run);
}

#endif
