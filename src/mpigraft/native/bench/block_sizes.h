/* Who has how many bytes for whom in collectives: what their setups are made of. */
#ifndef MPIGRAFT_PARTS_H
#define MPIGRAFT_PARTS_H

#include "message.h"
#include "run.h"

/* Bytes that `rank` gives to, or gets from, a root. */
static size_t share(const struct run *run, int rank)
{
    size_t n = (size_t)run->size, k = (size_t)rank;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return run->message.bytes * 2 * (k + 1) / (n + 1); /* a ramp, mean 1 */
    case COUNTS_SPARSE: return k % 2 ? 0 : run->message.bytes;
    default: return run->message.bytes;
    }
}

/* Bytes from one rank to another in alltoallv: skewed is a ramp that differs from row to row,
 * sparse are the neighbours in a ring. Both ways alike, as in place they have to be. */
static size_t share_between(const struct run *run, int from, int to)
{
    int apart = (to - from + run->size) % run->size;
    switch (has(run, COUNTED) ? run->options->counts : COUNTS_EQUAL) {
    case COUNTS_SKEWED: return share(run, (from + to) % run->size);
    case COUNTS_SPARSE: return apart == 1 || apart == run->size - 1 ? run->message.bytes : 0;
    default: return run->message.bytes;
    }
}

static void nothing(struct run *run)
{
    (void)run;
}

static void from_root(struct run *run)
{
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

static void sum(struct run *run)
{
    add_slot(run, &run->send, 0, -1, run->message.bytes);
    add_slot(run, &run->recv, 0, -1, run->message.bytes);
}

/* Bytes of what `rank` gets of a sum that is dealt out: the first ranks get a number more. */
static size_t portion(const struct run *run, int rank)
{
    size_t numbers = (size_t)run->message.count, ranks = (size_t)run->size;
    size_t each = run->message.bytes / (numbers ? numbers : 1);
    return each * (numbers / ranks + ((size_t)rank < numbers % ranks));
}

static void sum_in_portions(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, portion(run, p));
    add_slot(run, &run->recv, -1, run->rank, portion(run, run->rank));
}

static void sum_in_blocks(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, run->message.bytes);
    add_slot(run, &run->recv, -1, run->rank, run->message.bytes);
}

static void one_to_root(struct run *run)
{
    add_slot(run, &run->send, run->rank, -1, share(run, run->rank));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, -1, share(run, p));
}

static void one_from_root(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, -1, p, share(run, p));
    add_slot(run, &run->recv, -1, run->rank, share(run, run->rank));
}

static void one_between_all(struct run *run)
{
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->send, run->rank, p, share_between(run, run->rank, p));
    for (int p = 0; p < run->size; p++)
        add_slot(run, &run->recv, p, run->rank, share_between(run, p, run->rank));
}

#endif
