/* fmin and fmax, which some compilers take from libm: our programs are linked without it. */
#ifndef MPIGRAFT_EXTREMES_H
#define MPIGRAFT_EXTREMES_H

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

#endif
