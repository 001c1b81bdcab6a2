/* The machine's own counter, which is read in a few nanoseconds and runs at one rate on all cores
 * (constant_tsc on x86-64; the generic timer on aarch64). */
#ifndef MPIGRAFT_CALLS_TICKS_H
#define MPIGRAFT_CALLS_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ticks(void)
{
#if defined __x86_64__
    return __builtin_ia32_rdtsc();
#elif defined __aarch64__
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
#error "which counter this architecture has is not known here"
#endif
}

static inline int64_t nanoseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* One moment by both clocks. */
struct moment {
    uint64_t ticks;
    int64_t ns; /* CLOCK_MONOTONIC */
};

static inline struct moment moment_now(void)
{
    return (struct moment){ticks(), nanoseconds(CLOCK_MONOTONIC)};
}

/* Ticks per second between two moments; 1e9 where no time went by. */
static inline double tick_rate(struct moment from, struct moment to)
{
    double ns = (double)(to.ns - from.ns);
    return ns > 0 ? (double)(to.ticks - from.ticks) * 1e9 / ns : 1e9;
}

/* What two reads take, one after the other: the least of many. */
static inline uint64_t pair_of_ticks(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 100; i++) {
        uint64_t from = ticks(), took = ticks() - from;
        least = took < least ? took : least;
    }
    return least;
}

#endif
