/* Tags that this MPI does not permit: all tags of the record get other numbers, from 0, the same on
 * all ranks. What matches what stays as it was. */
#ifndef MPIGRAFT_REPLAY_TAGS_H
#define MPIGRAFT_REPLAY_TAGS_H

#include "run.h"

struct tags {
    int64_t *items;
    int count, room;
};

static int compare_tags(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static void keep_once(struct tags *tags)
{
    int kept = 0;
    if (tags->count)
        qsort(tags->items, (size_t)tags->count, sizeof *tags->items, compare_tags);
    for (int i = 0; i < tags->count; i++)
        if (!kept || tags->items[i] != tags->items[kept - 1])
            tags->items[kept++] = tags->items[i];
    tags->count = kept;
}

static void add_tag(struct tags *tags, int64_t *tag)
{
    if (*tag < 0) /* any */
        return;
    if (tags->count == tags->room) {
        keep_once(tags);
        if (2 * tags->count >= tags->room)
            tags->room = 2 * tags->room + 256;
        tags->items = realloc(tags->items, (size_t)tags->room * sizeof *tags->items);
        if (!tags->items)
            DIE("out of memory");
    }
    tags->items[tags->count++] = *tag;
}

/* NEVER_SENT stays free: it is for receives that get nothing. */
static void change_tag(struct tags *tags, int64_t *tag)
{
    const int64_t *at = *tag < 0 ? NULL : bsearch(tag, tags->items, (size_t)tags->count,
                                                  sizeof *tag, compare_tags);
    if (at)
        *tag = at - tags->items + (at - tags->items >= NEVER_SENT);
}

static void each_tag(struct tags *tags, void act(struct tags *, int64_t *))
{
    for (uint64_t i = 0; i < record.call_count; i++) {
        struct call *call = &record.calls[i];
        for (int k = 0; k < call->routine->count; k++)
            if (call->routine->parameters[k].letter == 'k')
                act(tags, &call->fields[k].value);
        if (call->matched)
            act(tags, &call->tag);
        for (int k = 0; k < call->completed_count; k++)
            act(tags, &call->completed[k].tag);
    }
}

/* The tags of all ranks, each once. */
static struct tags gather_tags(const struct tags *own, int size)
{
    struct tags all = {NULL, 0, 0};
    int *counts = need((size_t)size, sizeof *counts), *places = need((size_t)size, sizeof *places);
    OWN(PMPI_Allgather(&own->count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) {
        places[i] = all.count;
        all.count += counts[i];
    }
    all.items = need((size_t)all.count, sizeof *all.items);
    OWN(PMPI_Allgatherv(own->items, own->count, MPI_INT64_T, all.items, counts, places, MPI_INT64_T,
                        MPI_COMM_WORLD));
    free(counts), free(places);
    keep_once(&all);
    return all;
}

/* What is wrong with them; NULL: nothing. */
static const char *permit_tags(int size)
{
    struct tags own = {NULL, 0, 0};
    int there = 0, *bound = NULL;
    int64_t most = 0, largest = 0;
    OWN(PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &there));
    each_tag(&own, add_tag);
    keep_once(&own);
    most = own.count ? own.items[own.count - 1] : 0;
    OWN(PMPI_Allreduce(&most, &largest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD));
    const char *problem = NULL;
    if (there && largest > *bound) {
        struct tags all = gather_tags(&own, size);
        problem = all.count < *bound ? NULL : "it has more tags than this MPI permits";
        if (!problem)
            each_tag(&all, change_tag);
        free(all.items);
    }
    free(own.items);
    return problem;
}

#endif
