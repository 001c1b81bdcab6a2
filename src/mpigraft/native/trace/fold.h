/* A sequence of calls with its repeats folded into loops, as it grows.
 *
 * The sequence ends in calls and loops. Whenever the last L of them equal the L before, the two
 * become a loop; whenever they equal the body of the loop before them, it counts one more. Loops
 * of loops come of the same rule. Equality is of signatures and counts; what a call took and the
 * gap before it are added up, with a histogram of gaps. Candidates for L are the distances to
 * former places of what was added last, so that a call costs the same however long the run is.
 * Windows are compared by a polynomial hash of 64 bits of their prefix, and then one by one.
 */
#ifndef MPIGRAFT_TRACE_FOLD_H
#define MPIGRAFT_TRACE_FOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 16 }; /* of gaps: the last holds all that are longer */

struct histogram {
    uint64_t counts[BUCKETS];
    double ticks[BUCKETS], squares[BUCKETS];
};

struct gaps {
    uint64_t times, gap, took;   /* ticks */
    struct histogram *histogram; /* NULL: all gaps are their mean, as that of a call made once */
};

struct node {
    uint64_t hash;
    uint64_t count;    /* of a loop; 0: a call */
    uint32_t former;   /* place of the node before with this hash, from 1; 0: there is none */
    uint32_t loop;     /* place of the loop before, likewise */
    uint32_t signature;
    union {
        struct gaps gaps;
        struct sequence *body;
    };
};

struct sequence {
    struct node *nodes;
    size_t length, room;
};

extern struct fold {
    struct sequence all;
    uint64_t *prefix; /* prefix[i]: hash of the first i nodes */
    size_t room;
    struct {
        uint64_t hash;
        uint32_t place; /* of the last node with this hash, from 1 */
    } *last;
    size_t last_room, last_used;
    size_t bytes; /* in use */
} fold;

void *need(void *memory, size_t from, size_t to);

bool fold_call(uint32_t signature, uint64_t gap, uint64_t took);

#endif
