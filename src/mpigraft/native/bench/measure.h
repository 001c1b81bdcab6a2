/* What is measured, and what came of it. */
#ifndef MPIGRAFT_MEASURE_H
#define MPIGRAFT_MEASURE_H

#include "../common/clock.h"
#include "run.h"

enum {
    PHASES = 4, /* of a call that overlaps, of about one length: pure, overall (two), compute */
};

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

void measure_size(struct run *run, size_t bytes, struct clock clock, bool first,
                  struct result *result);
double overlap_of(double overall, double compute, double pure);

/* ---- pairs.c ---- */

int run_pairs(const struct options *options, MPI_Comm hosts, struct clock clock, bool *valid);

/* ---- startup.c ---- */

double since_launch(double launched);
void start_mpi(int *argc, char ***argv, bool threads);
double memory_after_talking(MPI_Comm comm);
void introduce_partitions(int rank);

/* ---- threads.c ---- */

void one_for_each_thread(struct run *run);
double time_threads(struct run *run, long iterations);

#endif
