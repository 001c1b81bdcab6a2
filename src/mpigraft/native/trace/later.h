/* What persistent requests send when they are started. */
#ifndef MPIGRAFT_TRACE_LATER_H
#define MPIGRAFT_TRACE_LATER_H

#include "ids.h"
#include "count.h"

/* A request is known by a number (ids.h), by which its message is kept. */
static struct later {
    uint64_t bytes;
    int world;
} *laters;
static uint32_t later_room;
static struct ids later_ids;
static pthread_mutex_t laters_lock = PTHREAD_MUTEX_INITIALIZER;

static void forget_later(uint64_t request)
{
    pthread_mutex_lock(&laters_lock);
    free_id(&later_ids, take_known(&later_ids, request).id);
    pthread_mutex_unlock(&laters_lock);
}

COLD static void send_later(uint64_t request, uint64_t bytes, int world)
{
    forget_later(request);
    pthread_mutex_lock(&laters_lock);
    uint32_t id = new_id(&later_ids, request, 0);
    if (id >= later_room && id < later_ids.most) {
        struct later *more = realloc(laters, later_ids.most * sizeof *laters);
        laters = more ? more : laters;
        later_room = more ? later_ids.most : later_room;
    }
    if (id && id < later_room)
        laters[id] = (struct later){bytes, world};
    else
        process.head->dropped |= DROPPED_SIZES;
    pthread_mutex_unlock(&laters_lock);
}

/* What request `i` sends; NULL: nothing. With the lock. */
static const struct later *later_of(const MPI_Request *requests, int i)
{
    const struct known *known = find_known(&later_ids, KEY(requests[i]));
    return known && known->id < later_room ? &laters[known->id] : NULL;
}

/* Each message has a part of the time, by its bytes. */
OUTSIDE static void count_started(struct self *me, struct trace_routine *row, uint64_t took, int count,
                          const MPI_Request *requests)
{
    uint64_t bytes = 0, messages = 0;
    pthread_mutex_lock(&laters_lock);
    for (int i = 0; i < count; i++) {
        const struct later *one = later_of(requests, i);
        bytes += one ? one->bytes : 0;
        messages += one != NULL;
    }
    for (int i = 0; messages && i < count; i++) {
        const struct later *one = later_of(requests, i);
        if (!one)
            continue;
        double part = bytes ? (double)one->bytes / (double)bytes : 1.0 / (double)messages;
        row->bytes += one->bytes;
        count_size(row, one->bytes, 1, (uint64_t)((double)took * part));
        count_peer(me, one->world, PEER_P2P, one->bytes);
    }
    pthread_mutex_unlock(&laters_lock);
}

#define LATER(count, type, dest, comm, request)                                              \
    do {                                                                                     \
        if ((dest) >= 0)                                                                     \
            send_later(KEY(*(request)), (uint64_t)(count) * type_size(me, type),             \
                       world_rank(members_of_comm(me, comm), dest));                         \
        else                                                                                 \
            forget_later(KEY(*(request)));                                                   \
    } while (0)
#define NOT_SENT(request) forget_later(KEY(*(request)))
#define LATER_GONE(request) forget_later(KEY(*(request)))
#define STARTED(count, requests) count_started(me, row, took, count, requests)

#endif
