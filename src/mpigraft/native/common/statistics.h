/* Order statistics of a few hundred numbers. */
#ifndef MPIGRAFT_STATISTICS_H
#define MPIGRAFT_STATISTICS_H

#include <stdlib.h>
#include <string.h>

#include "check.h"

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Quantile of ascending values, between two of them where it falls there. */
static inline double quantile(const double *sorted, int count, double q)
{
    double place = q * (count - 1);
    int below = (int)place, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

static inline double mean_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

static inline double median_of(const double *values, int count)
{
    double *sorted = need((size_t)count, sizeof *sorted);
    memcpy(sorted, values, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, ascending);
    double median = quantile(sorted, count, 0.5);
    free(sorted);
    return median;
}

#endif
