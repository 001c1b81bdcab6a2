/* The clock that everything is timed by, and how fine it is. */
#ifndef MPIGRAFT_CLOCK_H
#define MPIGRAFT_CLOCK_H

#include <time.h>

#include "check.h"
#include "statistics.h"

struct clock {
    double cost;       /* seconds that a reading takes */
    double resolution; /* seconds of the smallest step from one reading to another */
};

/* The kernel's clock for every MPI: MPI_Wtime differs from one to the other in cost and in
 * resolution, and that is not what is compared here. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Read the clock until it has been read and has moved on often enough. The smallest step that it
 * made is its resolution, as STREAM takes it (checktick): a tick of a coarse clock, and of a fine
 * one the time from one reading to the next. */
static inline struct clock examine_clock(void)
{
    enum { READINGS = 10000, STEPS = 10, MOST_READINGS = 1 << 28 };
    double begin = now(), last = begin, least = 1;
    long readings = 0, steps = 0;
    while (readings < READINGS || steps < STEPS) {
        double next = now();
        if (next > last) {
            least = smaller(least, next - last);
            steps++;
        }
        last = next;
        if (++readings == MOST_READINGS)
            DIE("CLOCK_MONOTONIC moved on %ld times in %ld readings: nothing can be timed by it",
                steps, readings);
    }
    return (struct clock){(last - begin) / (double)readings, least};
}

/* Seconds that a reading is off by: what it takes, or the step that it cannot see within. */
static inline double coarseness(struct clock clock)
{
    return larger(clock.cost, clock.resolution);
}

#endif
