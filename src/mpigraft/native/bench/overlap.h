/* How much of a call's time computation can hide, as OSU's non-blocking benchmarks have it.
 *
 * Each rank computes for as long as the call takes it alone ("pure"), between the start of the call
 * and the wait for it ("overall"); what it computes is timed by itself ("compute"). The overlap is
 * 100 - (overall - compute) / pure * 100 percent of their means over ranks, and no less than 0.
 */
#ifndef MPIGRAFT_OVERLAP_H
#define MPIGRAFT_OVERLAP_H

#include "batch.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "compute.h"
#include "run.h"
#include "../common/statistics.h"

enum {
    PHASES = 4,               /* of about one length: pure, overall (two), compute */
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

static double overlap_of(double overall, double compute, double pure)
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

#endif
