/* What a call moves: bytes, sizes of messages and to whom, by the shapes that calls.h names.
 *
 * `bytes` of a routine are of the data that this rank gives: what it sends, puts, or has reduced.
 * A routine that takes alone (a receive, a broadcast's other ranks, a scatter's) has the bytes of
 * the buffer that it offers. Message sizes are per block: for each destination of an all-to-all.
 */
#ifndef MPIGRAFT_TRACE_COUNT_H
#define MPIGRAFT_TRACE_COUNT_H

#include "trace_objects.h"

static inline unsigned size_class(uint64_t bytes)
{
    return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

/* Count `messages` of `bytes` each. */
OUTSIDE static void count_size(struct trace_routine *row, uint64_t bytes, uint64_t messages,
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

OUTSIDE static void count_peer(struct self *me, int world, enum peer_kind kind, uint64_t bytes)
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

/* Names that a shape may use: me, row, took. Counts may be int or MPI_Count. */

#define NOTHING

/* Data of this rank, to nobody in particular. */
#define GIVEN(count, type)                                         \
    do {                                                           \
        uint64_t bytes_ = (uint64_t)(count) * type_size(me, type); \
        row->bytes += bytes_;                                      \
        count_size(row, bytes_, 1, took);                          \
    } while (0)

/* The buffer of a receive; nothing comes from MPI_PROC_NULL. */
#define OFFERED(count, type, source)      \
    do {                                  \
        if ((source) != MPI_PROC_NULL)    \
            GIVEN(count, type);           \
    } while (0)

#define SENT(count, type, dest, comm)                                                  \
    do {                                                                               \
        if ((dest) >= 0) {                                                             \
            uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);                 \
            row->bytes += bytes_;                                                      \
            count_size(row, bytes_, 1, took);                                          \
            count_peer(me, world_rank(members_of_comm(me, comm), dest), PEER_P2P,      \
                       bytes_);                                                        \
        }                                                                              \
    } while (0)

#define ONE_SIDED(count, type, target, win)                                            \
    do {                                                                               \
        if ((target) >= 0) {                                                           \
            uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);                 \
            row->bytes += bytes_;                                                      \
            count_size(row, bytes_, 1, took);                                          \
            count_peer(me, world_rank(members_of_win(me, win), target), PEER_ONE_SIDED, \
                       bytes_);                                                        \
        }                                                                              \
    } while (0)

/* This rank's part of an allgather; in place it lies where it is received. */
#define OWN(buffer, count, type, recvcount, recvtype)  \
    do {                                               \
        if ((const void *)(buffer) == MPI_IN_PLACE)    \
            GIVEN(recvcount, recvtype);                \
        else                                           \
            GIVEN(count, type);                        \
    } while (0)

#define OWN_OF(buffer, count, type, recvcounts, recvtype, comm)                         \
    do {                                                                                \
        int own_ = 0;                                                                   \
        if ((const void *)(buffer) == MPI_IN_PLACE) {                                   \
            PMPI(Comm_rank, int (*)(MPI_Comm, int *))(comm, &own_);                     \
            GIVEN((recvcounts)[own_], recvtype);                                        \
        } else                                                                          \
            GIVEN(count, type);                                                         \
    } while (0)

/* A gather's root gives its part too; with an intercommunicator it gives none. */
#define GATHERED(buffer, count, type, recvcount, recvtype, root, comm)                    \
    do {                                                                                  \
        bool in_place_ = (const void *)(buffer) == MPI_IN_PLACE;                          \
        if ((root) >= 0 && !in_place_) {                                                  \
            GIVEN(count, type);                                                           \
            count_peer(me, world_rank(members_of_comm(me, comm), root), PEER_COLLECTIVE,  \
                       (uint64_t)(count) * type_size(me, type));                          \
        } else if (in_place_ && (recvcount) > 0)                                          \
            GIVEN(recvcount, recvtype);                                                   \
    } while (0)

OUTSIDE static bool is_root(MPI_Comm comm, int root)
{
    int rank = -1, far = 0;
    PMPI(Comm_test_inter, int (*)(MPI_Comm, int *))(comm, &far);
    PMPI(Comm_rank, int (*)(MPI_Comm, int *))(comm, &rank);
    return far ? root == MPI_ROOT : rank == root;
}

/* The same block for each. */
#define TO_EACH(place, count, type, comm)                                                       \
    do {                                                                                        \
        struct members *to_ = members_of_comm(me, comm);                                        \
        if ((place) == NEIGHBORS)                                                               \
            to_ = with_neighbors(to_, comm);                                                    \
        uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);                              \
        int blocks_ = block_count(place, to_);                                                  \
        row->bytes += bytes_ * (uint64_t)blocks_;                                               \
        count_size(row, bytes_, (uint64_t)blocks_, took);                                       \
        for (int i_ = 0; i_ < blocks_; i_++)                                                    \
            count_peer(me, world_rank(to_, block_rank(place, to_, i_)), PEER_COLLECTIVE, bytes_); \
    } while (0)

#define ALL(place, buffer, count, type, recvcount, recvtype, comm) \
    do {                                                           \
        if ((const void *)(buffer) == MPI_IN_PLACE)                \
            TO_EACH(place, recvcount, recvtype, comm);             \
        else                                                       \
            TO_EACH(place, count, type, comm);                     \
    } while (0)

/* A block of its own for each; `size` is of an item of block i_. */
#define TO_EACH_OF(place, counts, size, comm)                                                   \
    do {                                                                                        \
        struct members *to_ = members_of_comm(me, comm);                                        \
        if ((place) == NEIGHBORS)                                                               \
            to_ = with_neighbors(to_, comm);                                                    \
        int blocks_ = block_count(place, to_);                                                  \
        for (int i_ = 0; i_ < blocks_; i_++) {                                                  \
            uint64_t bytes_ = (uint64_t)(counts)[i_] * (size);                                  \
            row->bytes += bytes_;                                                               \
            count_size(row, bytes_, 1, i_ ? 0 : took);                                          \
            if ((counts)[i_])                                                                   \
                count_peer(me, world_rank(to_, block_rank(place, to_, i_)), PEER_COLLECTIVE,    \
                           bytes_);                                                             \
        }                                                                                       \
    } while (0)

#define EACH(place, buffer, counts, type, recvcounts, recvtype, comm)       \
    do {                                                                    \
        if ((const void *)(buffer) == MPI_IN_PLACE)                         \
            TO_EACH_OF(place, recvcounts, type_size(me, recvtype), comm);   \
        else                                                                \
            TO_EACH_OF(place, counts, type_size(me, type), comm);           \
    } while (0)

#define EACH_TYPED(place, buffer, counts, types, recvcounts, recvtypes, comm)                   \
    do {                                                                                        \
        if ((const void *)(buffer) == MPI_IN_PLACE)                                             \
            TO_EACH_OF(place, recvcounts, (recvcounts)[i_] ? type_size(me, (recvtypes)[i_]) : 0, \
                       comm);                                                                   \
        else                                                                                    \
            TO_EACH_OF(place, counts, (counts)[i_] ? type_size(me, (types)[i_]) : 0, comm);     \
    } while (0)

#define SCATTERED(count, type, recvcount, recvtype, root, comm) \
    do {                                                        \
        if (is_root(comm, root))                                \
            TO_EACH(OTHERS, count, type, comm);                 \
        else if ((root) >= 0)                                   \
            GIVEN(recvcount, recvtype);                         \
    } while (0)

#define SCATTERED_EACH(counts, type, recvcount, recvtype, root, comm) \
    do {                                                              \
        if (is_root(comm, root))                                      \
            TO_EACH_OF(OTHERS, counts, type_size(me, type), comm);    \
        else if ((root) >= 0)                                         \
            GIVEN(recvcount, recvtype);                               \
    } while (0)

#define REDUCED_EACH(counts, type, comm)                                    \
    do {                                                                    \
        struct members *to_ = members_of_comm(me, comm);                    \
        uint64_t all_ = 0;                                                  \
        for (int i_ = 0; i_ < block_count(OTHERS, to_); i_++)               \
            all_ += (uint64_t)(counts)[i_];                                 \
        GIVEN(all_, type);                                                  \
    } while (0)

#define REDUCED_BLOCK(count, type, comm)                                                  \
    GIVEN((uint64_t)(count) * (uint64_t)block_count(OTHERS, members_of_comm(me, comm)), type)

/* A handle may mean another object from now on. */
#define COMM_GONE __atomic_fetch_add(&process.generation, 1, __ATOMIC_RELAXED)
#define WIN_GONE COMM_GONE
#define TYPE_GONE COMM_GONE

/* ---- what is sent when it is started ---- */

struct later {
    uint64_t request, bytes;
    int world;
};

enum { LATERS = 4096 };
static struct later *laters; /* open addressing by the request's handle */
static pthread_mutex_t laters_lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles of requests that were freed stay until they are used again. */
static struct later *later_of(uint64_t request, bool add)
{
    if (!laters && !(laters = calloc(LATERS, sizeof *laters)))
        return NULL;
    for (uint64_t i = 0, at = request * 0x9e3779b97f4a7c15u >> 52; i < LATERS; i++, at++) {
        struct later *one = &laters[at % LATERS];
        if (one->request == request)
            return one;
        if (!one->request)
            return add ? (one->request = request, one) : NULL;
    }
    return NULL;
}

/* `bytes` of UINT64_MAX: nothing is sent. */
COLD static void send_later(MPI_Request request, uint64_t bytes, int world)
{
    pthread_mutex_lock(&laters_lock);
    struct later *later = later_of(KEY(request), true);
    if (later)
        *later = (struct later){KEY(request), bytes, world};
    pthread_mutex_unlock(&laters_lock);
}

OUTSIDE static void count_started(struct self *me, struct trace_routine *row, uint64_t took, int count,
                          const MPI_Request *requests)
{
    for (int i = 0; laters && i < count; i++) {
        pthread_mutex_lock(&laters_lock);
        struct later *later = later_of(KEY(requests[i]), false);
        struct later one = later ? *later : (struct later){0, UINT64_MAX, -1};
        pthread_mutex_unlock(&laters_lock);
        if (one.bytes == UINT64_MAX)
            continue;
        row->bytes += one.bytes;
        count_size(row, one.bytes, 1, i ? 0 : took);
        count_peer(me, one.world, PEER_P2P, one.bytes);
    }
}

#define LATER(count, type, dest, comm, request)                                           \
    send_later(*(request), (dest) < 0 ? UINT64_MAX : (uint64_t)(count) * type_size(me, type), \
               (dest) < 0 ? -1 : world_rank(members_of_comm(me, comm), dest))
#define NOT_SENT(request) send_later(*(request), UINT64_MAX, -1)
#define STARTED(count, requests) count_started(me, row, took, count, requests)

#endif
