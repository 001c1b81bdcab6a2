/* Batches: prepare, time so many iterations, check; and samples, which are means of batches.
 *
 * A sample is the mean of a batch, because reading the clock costs as much as a small message.
 */
#ifndef MPIGRAFT_BATCH_H
#define MPIGRAFT_BATCH_H

#include <math.h>

#include "buffers.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "run.h"
#include "../common/statistics.h"
#include "threads.h"

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

/* What one size of one benchmark gave, on rank 0. `samples` are seconds per iteration. */
struct result {
    size_t size;
    double *samples;
    int count;
    long batch;
    bool checked, valid;
    double resolution; /* seconds: the smallest step of a sample */
    double rank_mean, rank_min, rank_max; /* over ranks of their means, seconds per iteration */
    double *overall, *overlap; /* samples, where calls overlap with computation: seconds, percent */
    double overall_mean, compute, pure; /* means over ranks: seconds */
};

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

static long told_by_rank_0(const struct run *run, long value)
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
        if (told_by_rank_0(run, late))
            break;
    }
    return (int)done;
}

#endif
