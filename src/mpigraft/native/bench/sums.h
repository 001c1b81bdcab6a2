/* Numbers that ranks add up, and whether the sums are right. */
#ifndef MPIGRAFT_SUMS_H
#define MPIGRAFT_SUMS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "run.h"

enum {
    MOST_ADDING = 42, /* ranks that add to one sum of signed chars: each at most 3 then */
    MOST_ADDEND = 7,
    UNKNOWN = 0xFF,   /* no part of a sum, and no sum of signed chars */
};

/* What rank `rank` adds to the content before a reduction, small enough that float sums of
 * tens of thousands of ranks are exact. */
static unsigned addend(int rank)
{
    return (unsigned)rank & MOST_ADDEND;
}

/* No sum of signed chars is over 127. What comes beyond is left open by C and MPI: Open MPI's loops
 * for AVX stop at 127 where its others wrap. So of many ranks every k-th one adds to a byte. */
static unsigned every_kth(int ranks)
{
    return ((unsigned)ranks + MOST_ADDING - 1) / MOST_ADDING;
}

/* What `rank` adds where the content has `byte`. */
static unsigned part_of_sum(int rank, int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), adding = ((unsigned)ranks + k - 1) / k;
    if (((unsigned)rank + byte) % k)
        return 0;
    return 1 + ((unsigned)rank & 1u) + byte % (SCHAR_MAX / adding - 1);
}

/* What all ranks add there: 1 or more. */
static unsigned sum_of_parts(int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), sum = 0;
    for (unsigned rank = (k - byte % k) % k; rank < (unsigned)ranks; rank += k)
        sum += part_of_sum((int)rank, ranks, byte);
    return sum;
}

/* The most that any of them adds there. */
static unsigned most_of_parts(int ranks, unsigned byte)
{
    unsigned k = every_kth(ranks), most = 0;
    for (unsigned rank = (k - byte % k) % k; rank < (unsigned)ranks; rank += k) {
        unsigned part = part_of_sum((int)rank, ranks, byte);
        most = part > most ? part : most;
    }
    return most;
}

static void fill_small_numbers(const struct run *run, char *to, const unsigned char *from,
                               size_t bytes)
{
    unsigned char parts[UCHAR_MAX + 1];
    memset(parts, UNKNOWN, sizeof parts);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char *part = &parts[from[i]];
        if (*part == UNKNOWN)
            *part = (unsigned char)part_of_sum(run->rank, run->size, from[i]);
        to[i] = (char)*part;
    }
}

static bool right_small_sums(const struct run *run, const char *at, const unsigned char *from,
                             size_t bytes)
{
    unsigned char sums[UCHAR_MAX + 1];
    unsigned wrong = 0;
    memset(sums, UNKNOWN, sizeof sums);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char *sum = &sums[from[i]];
        if (*sum == UNKNOWN)
            *sum = (unsigned char)(in_place(run) ? most_of_parts(run->size, from[i])
                                                 : sum_of_parts(run->size, from[i]));
        wrong |= (unsigned char)at[i] != *sum;
    }
    return !wrong;
}

static void fill_numbers(const struct run *run, char *to, const unsigned char *from, size_t bytes)
{
    unsigned mine = addend(run->rank);
    if (run->message.type == MPI_FLOAT)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)(void *)to)[i] = (float)(from[i] + mine);
    else if (run->message.type == MPI_SIGNED_CHAR)
        fill_small_numbers(run, to, from, bytes);
    else
        for (size_t i = 0; i < bytes; i++)
            to[i] = (char)(unsigned char)(from[i] + mine);
}

/* The largest of what ranks give: content and the largest addend, as far as a byte holds it. */
static bool right_maxima(const struct run *run, const char *at, const unsigned char *from,
                         size_t bytes)
{
    unsigned wrong = 0;
    bool floats = run->message.type == MPI_FLOAT;
    for (size_t i = 0; i < (floats ? bytes / sizeof(float) : bytes); i++) {
        unsigned most = 0;
        for (int rank = 0; rank < run->size && rank <= (int)MOST_ADDEND; rank++) {
            unsigned given = from[i] + addend(rank);
            given = floats ? given : (unsigned char)given;
            most = given > most ? given : most;
        }
        wrong |= floats ? ((const float *)(const void *)at)[i] != (float)most
                        : (unsigned char)at[i] != most;
    }
    return !wrong;
}

static bool right_sums(const struct run *run, const char *at, const unsigned char *from,
                       size_t bytes)
{
    unsigned ranks = (unsigned)run->size, more = 0, wrong = 0;
    if (run->message.type == MPI_SIGNED_CHAR)
        return right_small_sums(run, at, from, bytes);
    if (in_place(run))
        return right_maxima(run, at, from, bytes);
    for (int rank = 0; rank < run->size; rank++)
        more += addend(rank);
    if (run->message.type == MPI_FLOAT)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            wrong |= ((const float *)(const void *)at)[i] != (float)(from[i] * ranks + more);
    else
        for (size_t i = 0; i < bytes; i++)
            wrong |= (unsigned char)at[i] != (unsigned char)(from[i] * ranks + more);
    return !wrong;
}

/* Whether numbers that were all ones have had the content added to them `accumulated` times: as
 * unsigned integers, whose sums wrap in every MPI; or as bytes, by an exclusive or. */
static bool right_accumulation(const struct run *run, const char *at, const unsigned char *from,
                               size_t bytes)
{
    uint64_t times = (uint64_t)run->accumulated, wrong = 0;
    size_t width = run->message.type == MPI_BYTE ? 1 : run->message.bytes /
                                                           (size_t)run->message.count;
    for (size_t i = 0; i + width <= bytes; i += width) {
        uint64_t number = 0, given = 0, all = UINT64_MAX >> (64 - 8 * width);
        memcpy(&number, at + i, width); /* of machines that store the low byte first */
        memcpy(&given, from + i, width);
        uint64_t expected = width > 1 ? all + times * given : all ^ (times % 2 ? given : 0);
        wrong |= number ^ (expected & all);
    }
    return !wrong;
}

#endif
