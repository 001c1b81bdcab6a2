/* What rank 0 prints: one JSON line per value, or the layout of the OSU benchmarks 7.4. */
#ifndef MPIGRAFT_OUTPUT_H
#define MPIGRAFT_OUTPUT_H

#include "measure.h"

struct metric_row {
    const char *name, *unit;
};

extern const struct metric_row METRICS[];

/* A value in the unit of its metric, and the smallest step that it can make there: the clock's. */
struct figure {
    double value, resolution;
};

struct figure figure_of(const struct run *run, enum metric metric,
                        const struct result *result);
int print_json(const struct run *run, const struct result *result);
void osu_header(const struct run *run);
int print_osu(const struct run *run, const struct result *result);

#endif
