/* What timing decides of completions is kept out of a record where nothing depends on it, so that
 * steps that repeat stay equal.
 *
 * MPI_Waitany, Testany, Waitsome and Testsome say "any one of these requests", once for each that
 * completed. The array of requests keeps their numbers until all are complete: which of them is
 * first changes neither what later calls name nor what later requests are called. Sources that
 * receives of any source got are put in order among receives that are the same.
 */
#include <stdlib.h>

#include "recorder.h"

enum { CROWDS = 16 };

/* An array of requests, some of them complete. */
static struct crowd {
    const void *array;
    int count;
    uint32_t *ids;
    bool *kept; /* it is complete, and its number is not free yet */
} crowds[CROWDS];

static struct crowd *crowd_at(const void *array)
{
    return &crowds[((uintptr_t)array >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
}

static void drop_crowd(struct crowd *crowd)
{
    for (int i = 0; i < crowd->count; i++)
        if (crowd->kept[i])
            free_id(&recorder.ids[REQUEST], crowd->ids[i]);
    free(crowd->ids), free(crowd->kept);
    *crowd = (struct crowd){.count = 0};
}

struct crowd *find_crowd(const void *array, int count)
{
    struct crowd *crowd = crowd_at(array);
    return crowd->array == array && crowd->count == count ? crowd : NULL;
}

static struct crowd *make_crowd(const void *array, int count)
{
    struct crowd *crowd = crowd_at(array);
    if (crowd->array == array && crowd->count == count)
        return crowd;
    drop_crowd(crowd);
    *crowd = (struct crowd){array, count, calloc((size_t)count, sizeof *crowd->ids),
                            calloc((size_t)count, sizeof *crowd->kept)};
    if (!crowd->ids || !crowd->kept)
        crowd->count = 0;
    return crowd->count ? crowd : NULL;
}

/* The number of the request that is, or was, at a place of an array. */
uint32_t place_id(struct crowd *crowd, int place, uint32_t id)
{
    if (!crowd || (!id && !crowd->kept[place]))
        return id;
    if (id && crowd->kept[place] && crowd->ids[place] != id) {
        free_id(&recorder.ids[REQUEST], crowd->ids[place]);
        crowd->kept[place] = false;
    }
    if (id)
        crowd->ids[place] = id;
    return crowd->ids[place];
}

/* After a call: those that it completed and freed give their numbers back, when all have. */
OUTSIDE static void settle_pending(const MPI_Request *requests)
{
    struct pending *pending = &event.pending;
    int stay = 0, gone = 0;
    pthread_mutex_lock(&recorder.lock);
    for (int i = 0; i < pending->count; i++) {
        struct known *known = &pending->known[i];
        bool stays = known->id && KEY(requests[i]) == known->handle;
        stay += stays, gone += known->id && !stays;
        if (stays)
            put_known(&recorder.ids[REQUEST], *known);
    }
    struct crowd *crowd = pending->count < 2 ? NULL
                          : stay && gone     ? make_crowd(requests, pending->count)
                                             : find_crowd(requests, pending->count);
    for (int i = 0; i < pending->count; i++) {
        struct known *known = &pending->known[i];
        if (!known->id || KEY(requests[i]) == known->handle)
            continue;
        if (crowd && stay)
            crowd->ids[i] = known->id, crowd->kept[i] = true;
        else
            free_id(&recorder.ids[REQUEST], known->id);
    }
    if (crowd && !stay)
        drop_crowd(crowd);
    pthread_mutex_unlock(&recorder.lock);
    pending->count = 0;
}

/* A source and a tag that a receive got, for each of those of one kind in order. */
struct got {
    int64_t place;
    uint32_t kind;
    int source, tag;
};

static void order_sources(struct got *all, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = i + 1; k < count; k++) {
            struct got *low = &all[i], *high = &all[k];
            if (low->kind != high->kind || low->source < high->source ||
                (low->source == high->source && low->tag <= high->tag))
                continue;
            int source = low->source, tag = low->tag;
            low->source = high->source, low->tag = high->tag;
            high->source = source, high->tag = tag;
        }
}

/* After a call that completed all or none of its requests. */
OUTSIDE void put_completed(const MPI_Request *requests, int64_t done,
                           const MPI_Status *statuses)
{
    struct pending *pending = &event.pending;
    int64_t wild = 0, next = 0;
    for (int64_t i = 0; i < done; i++)
        wild += pending->known[i].wild != 0;
    struct got *all = wild ? malloc((size_t)wild * sizeof *all) : NULL;
    for (int64_t i = 0; all && i < done; i++)
        if (pending->known[i].wild)
            all[next++] = (struct got){i, pending->known[i].wild, source_of(&statuses[i]),
                                       statuses[i].MPI_TAG};
    order_sources(all, next);
    put_integer(next);
    for (int64_t i = 0; i < next; i++) {
        put_integer(all[i].place);
        put_integer(all[i].source);
        put_integer(all[i].tag);
    }
    free(all);
    settle_pending(requests);
}

/* Which one: any, but what a receive of any source got has to be known. */
static int64_t put_place(int place, bool array)
{
    bool wild = event.pending.known[place].wild != 0;
    if (array)
        put_integer(1);
    put_integer(wild ? place : ANY_OF_THEM);
    return wild;
}

static void put_one(int place, const MPI_Status *status, bool array)
{
    int64_t wild = put_place(place, array);
    put_integer(wild);
    if (wild) {
        put_integer(place);
        put_source(source_of(status), status);
    }
}

/* After MPI_Waitany and MPI_Testany. */
OUTSIDE void put_any(const MPI_Request *requests, bool done, const int *place,
                     const MPI_Status *status)
{
    if (done)
        put_one(*place, status, false);
    else {
        put_integer(-1);
        put_integer(0);
    }
    settle_pending(requests);
}

/* After MPI_Waitsome and MPI_Testsome: a call for each that is complete. */
OUTSIDE void put_some(const MPI_Request *requests, int done, const int *places,
                      const MPI_Status *statuses)
{
    size_t start = event.length;
    for (int i = 0; i < done; i++) {
        event.length = start;
        put_one(places[i], &statuses[i], true);
        if (i < done - 1)
            end_event(0); /* what it took is counted for the last */
    }
    if (!done) {
        put_integer(0);
        put_integer(0);
    }
    settle_pending(requests);
}
