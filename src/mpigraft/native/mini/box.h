/* Boxes of a grid in three dimensions: what ranks have, and what two of them have in common. */
#ifndef MPIGRAFT_MINI_BOX_H
#define MPIGRAFT_MINI_BOX_H

#include <stddef.h>

enum { X, Y, Z };

/* Of the grid that a rank has with one direction whole. Points outside of the sphere are left out
 * of z-pencils, and columns of x outside of its shadow out of y-pencils. */
struct box {
    long long begin[3], end[3];
};

static struct box common(const struct box *one, const struct box *two)
{
    struct box both;
    for (int d = 0; d < 3; d++) {
        both.begin[d] = one->begin[d] > two->begin[d] ? one->begin[d] : two->begin[d];
        both.end[d] = one->end[d] < two->end[d] ? one->end[d] : two->end[d];
        if (both.end[d] < both.begin[d])
            both.end[d] = both.begin[d];
    }
    return both;
}

static size_t box_volume(const struct box *box)
{
    size_t product = 1;
    for (int d = 0; d < 3; d++)
        product *= (size_t)(box->end[d] - box->begin[d]);
    return product;
}

/* Where a point stands among those of a box; the direction `whole` runs fastest. */
static size_t point_at(const struct box *box, int whole, long long x, long long y, long long z)
{
    long long place[] = {x, y, z};
    size_t at = 0;
    for (int d = 2; d >= 0; d--)
        if (d != whole)
            at = at * (size_t)(box->end[d] - box->begin[d]) + (size_t)(place[d] - box->begin[d]);
    return at * (size_t)(box->end[whole] - box->begin[whole]) +
           (size_t)(place[whole] - box->begin[whole]);
}

#endif
