/* What a call moves: bytes, sizes of messages and to whom, by the shapes that calls.h names.
 *
 * `bytes` of a routine are of the data that this rank gives: what it sends, puts, or has reduced.
 * A routine that takes alone (a receive, a broadcast's other ranks, a scatter's) has the bytes of
 * the buffer that it offers. Message sizes are per block: for each destination of an all-to-all.
 */
#include <stdlib.h>

#include "count.h"
#include "ids.h"

/* Count `messages` of `bytes` each. */
OUTSIDE void count_size(struct trace_routine *row, uint64_t bytes, uint64_t messages,
                        uint64_t took)
{
    struct trace_size *sizes = at_offset(row->sizes);
    if (__builtin_expect(!sizes, 0)) {
        if (process.head->dropped & DROPPED_SIZES)
            return;
        sizes = take_room(SIZE_CLASSES * sizeof *sizes, DROPPED_SIZES);
        row->sizes = offset_of(sizes);
        if (!sizes)
            return;
    }
    struct trace_size *size = &sizes[size_class(bytes) % SIZE_CLASSES];
    size->calls += messages;
    size->bytes += bytes * messages;
    size->ticks += took;
}

/* The time of a call, by its blocks; `given` are those of them that this rank gives. */
OUTSIDE void count_time(struct trace_routine *row, const struct blocks *all,
                        const struct blocks *given, uint64_t took)
{
    if (!is_mixed(all)) {
        count_size(row, all->count ? all->bytes / all->count : 0, 0, took);
        return;
    }
    struct trace_mixed *mixed = at_offset(row->mixed);
    if (!mixed && !(process.head->dropped & DROPPED_SIZES)) {
        mixed = take_room(sizeof *mixed, DROPPED_SIZES);
        row->mixed = offset_of(mixed);
    }
    if (!mixed)
        return;
    mixed->calls += given->count;
    mixed->bytes += given->bytes;
    mixed->ticks += took;
    if (!mixed->most || all->least < mixed->least)
        mixed->least = all->least;
    if (all->most > mixed->most)
        mixed->most = all->most;
}

OUTSIDE void count_peer(struct self *me, int world, enum peer_kind kind, uint64_t bytes)
{
    if (world < 0)
        return;
    if (__builtin_expect(!me->peers, 0)) {
        if (process.head->dropped & DROPPED_PEERS)
            return;
        me->peers = take_room((uint64_t)process.head->size * PEER_KINDS * sizeof *me->peers,
                              DROPPED_PEERS);
        me->thread->peers = offset_of(me->peers);
        if (!me->peers)
            return;
    }
    struct trace_peer *peer = &me->peers[world * PEER_KINDS + (int)kind];
    peer->messages++;
    peer->bytes += bytes;
}

/* ---- the shapes ---- */

OUTSIDE int rank_in(MPI_Comm comm)
{
    int rank = 0;
    PMPI(Comm_rank, int (*)(MPI_Comm, int *))(comm, &rank);
    return rank;
}

OUTSIDE bool is_root(MPI_Comm comm, int root)
{
    int far = 0;
    PMPI(Comm_test_inter, int (*)(MPI_Comm, int *))(comm, &far);
    return far ? root == MPI_ROOT : rank_in(comm) == root;
}

/* A request is known by a number (ids.h), by which its message is kept. */
static struct later {
    uint64_t bytes;
    int world;
} *laters;
static uint32_t later_room;
static struct ids later_ids;
static pthread_mutex_t laters_lock = PTHREAD_MUTEX_INITIALIZER;

void forget_later(uint64_t request)
{
    pthread_mutex_lock(&laters_lock);
    free_id(&later_ids, take_known(&later_ids, request).id);
    pthread_mutex_unlock(&laters_lock);
}

COLD void send_later(uint64_t request, uint64_t bytes, int world)
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
OUTSIDE void count_started(struct self *me, struct trace_routine *row, uint64_t took, int count,
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
