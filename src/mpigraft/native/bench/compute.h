/* Computation beside communication: a chain of operations in registers, which touches no memory
 * and which no compiler can shorten. */
#ifndef MPIGRAFT_COMPUTE_H
#define MPIGRAFT_COMPUTE_H

#include <stdint.h>

static inline void compute(long steps)
{
    uint64_t state = 88172645463325252u;
    for (long i = 0; i < steps; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* xorshift64 */
        __asm__ volatile("" : "+r"(state));
    }
}

#endif
