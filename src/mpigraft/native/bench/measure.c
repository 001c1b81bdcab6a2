/* The one loop: batches until the budget of this size is spent.
 *
 * Rank 0 decides how long a batch is and how many there are, and tells the others.
 */
#include <math.h>

#include "../common/check.h"
#include "../common/clock.h"
#include "../common/statistics.h"
#include "compute.h"
#include "measure.h"
#include "message.h"

/* Batches: prepare, time so many iterations, check; and samples, which are means of batches.
 *
 * A sample is the mean of a batch, because reading the clock costs as much as a small message.
 */

enum {
    CLOCK_STEPS = 100, /* a batch is at least this many readings or steps of the clock long */
    LEAST_SAMPLES = 9, /* despite the budget: four disturbed ones leave the median alone */
    LEAST_LONG = 5,    /* where so many samples would take more than LONG budgets */
    LONG = 10,
    TRIES = 3,         /* before an operation is believed to be slow, a schedule to be good */
    FARTHEST = 4,      /* times a batch that are tried before an operation is believed slow, */
    PATIENCE = 5,      /* unless they take that many budgets */
    CHUNKS = 8,        /* the budget is looked at so many times */
    SCATTERED = 5,     /* times the shortest sample: a median beyond that was disturbed */
    MOST_BATCH = 1 << 22,
};

/* Seconds: the shortest that a rank waits when others take its CPU, a slice of the scheduler. */
static const double SLICE = 0.5e-3;

struct timed {
    double clock; /* seconds of the iterations alone */
    double wall;  /* with preparation and check */
};

/* Seconds of so many iterations, back to back. */
static double time_batch(struct run *run, long iterations)
{
    double begin = now();
    for (long i = 0; i < iterations; i++)
        run->benchmark->iterate(run, i);
    return now() - begin;
}

/* The same as OSU 7.4 takes it: each iteration by itself, and after one of a collective or of many
 * pairs' windows a barrier that is not timed. Its one-sided benchmarks read the clock twice in
 * the loop and once around it, and count the latter. */
static double time_batch_as_osu(struct run *run, long iterations)
{
    bool windows = run->benchmark->ranks == PAIRS && has(run, WINDOWED);
    bool apart = windows || (run->benchmark->ranks == EVERYONE && !has(run, SIZELESS));
    double begin = now(), sum = 0;
    for (long i = 0; i < iterations; i++) {
        double start = now();
        run->benchmark->iterate(run, i);
        sum += now() - start;
        if (apart)
            OK(MPI_Barrier(run->comm));
    }
    return has(run, PUTS | GETS) ? now() - begin : sum;
}

static double time_iterations(struct run *run, long iterations)
{
    if (has(run, THREADED))
        return time_threads(run, iterations);
    return like_osu(run) ? time_batch_as_osu(run, iterations) : time_batch(run, iterations);
}

static struct timed run_batch(struct run *run, long iterations)
{
    bool validate = !run->options->no_validate && !has(run, SIZELESS);
    double entered = now();
    if (validate || run->round == 0)
        prepare(run);
    OK(MPI_Barrier(run->comm));
    double clock = time_iterations(run, iterations);
    if (validate)
        check(run, iterations);
    return (struct timed){clock, now() - entered};
}

static long decided_by_rank_0(const struct run *run, long value)
{
    OK(MPI_Bcast(&value, 1, MPI_LONG, 0, run->comm));
    return value;
}

struct schedule {
    long batch; /* iterations per sample */
    long samples;
};

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
        if (decided_by_rank_0(run, late))
            break;
    }
    return (int)done;
}

/* How much of a call's time computation can hide, as OSU's non-blocking benchmarks have it.
 *
 * Each rank computes for as long as the call takes it alone ("pure"), between the start of the call
 * and the wait for it ("overall"); what it computes is timed by itself ("compute"). The overlap is
 * 100 - (overall - compute) / pure * 100 percent of their means over ranks, and no less than 0.
 */

enum {
    CALIBRATION = 1 << 16,    /* steps of computation */
    CALIBRATIONS = 5,
};

static double time_computation(long steps, long times)
{
    double begin = now();
    for (long i = 0; i < times; i++)
        compute(steps);
    return now() - begin;
}

/* Steps of computation that take `seconds`. An interruption makes a try longer, never shorter. */
static long steps_of(double seconds)
{
    double least = time_computation(CALIBRATION, 1);
    for (int i = 1; i < CALIBRATIONS; i++)
        least = smaller(least, time_computation(CALIBRATION, 1));
    return (long)(seconds / least * CALIBRATION);
}

static double typical(const struct run *run, const double *samples, int count)
{
    return like_osu(run) ? mean_of(samples, count) : median_of(samples, count);
}

double overlap_of(double overall, double compute, double pure)
{
    return larger(0, 100 - (overall - compute) / pure * 100);
}

/* Means over ranks, on rank 0. */
static void average(const struct run *run, double *values, int count)
{
    double *sums = need((size_t)count, sizeof *sums);
    OK(MPI_Reduce(values, sums, count, MPI_DOUBLE, MPI_SUM, 0, run->comm));
    for (int i = 0; i < count; i++)
        values[i] = sums[i] / run->size;
    free(sums);
}

/* As many samples as of the call alone, whose own `samples` this rank has. */
static void measure_overlap(struct run *run, const double *samples, struct result *result)
{
    int count = result->count;
    double *overall = need((size_t)count, sizeof *overall);
    double *alone = need((size_t)count, sizeof *alone);
    double pure = typical(run, samples, count);
    long steps = steps_of(pure);
    for (int i = 0; i < count; i++) {
        run->work = steps;
        overall[i] = run_batch(run, result->batch).clock / (double)result->batch;
        run->work = 0;
        alone[i] = time_computation(steps, result->batch) / (double)result->batch;
    }
    result->pure = pure;
    result->compute = median_of(alone, count); /* an interruption of it hides nothing */
    OK(MPI_Reduce(overall, result->overall, count, MPI_DOUBLE, MPI_MAX, 0, run->comm));
    average(run, overall, count);
    average(run, &result->pure, 1);
    average(run, &result->compute, 1);
    for (int i = 0; i < count; i++) {
        result->overlap[i] = overlap_of(overall[i], result->compute, result->pure);
        if (like_osu(run))
            result->overall[i] = overall[i];
    }
    result->overall_mean = typical(run, overall, count);
    free(overall);
    free(alone);
}

/* Warm up: `--warmup` iterations, each checked by itself, then batches until a tenth of the
 * budget has passed. At the first size it is a quarter: libraries were seen to take a thousand
 * messages, a millisecond, to reach their speed (connections, adaptive paths, clock rates). */
static void warm_up(struct run *run, bool first)
{
    double deadline = now() + (first ? 0.25e-3 : 0.1e-3) * run->options->budget;
    for (long i = 0; i < run->options->warmup; i++) {
        if (decided_by_rank_0(run, i > 0 && now() > deadline))
            return;
        run_batch(run, 1);
    }
    if (!run->options->warmup)
        return;
    for (long n = 2; !decided_by_rank_0(run, now() > deadline); n += n < 1024 ? n : 0)
        run_batch(run, n);
}

/* The shortest of a few tries, as rank 0 saw it. One that is short enough ends them: an
 * interruption makes a batch longer, never shorter, and must not be taken for a slow operation.
 * It may hit the preparation of one try and the iterations of another, so each has its own. */
static struct timed try_batch(struct run *run, long iterations, int tries, double enough)
{
    struct timed best = run_batch(run, iterations);
    for (int i = 1; i < tries && decided_by_rank_0(run, best.clock >= enough); i++) {
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
    while (decided_by_rank_0(run, too_short(run, least, timed, enough) && least < MOST_BATCH)) {
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
void measure_size(struct run *run, size_t bytes, struct clock clock, bool first,
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
        if (!decided_by_rank_0(run, misjudged(run, result, samples, clock, now() - begin)))
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
