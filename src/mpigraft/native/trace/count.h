/* What a call moves: bytes, sizes of messages and to whom, by the shapes that calls.h names.
 *
 * `bytes` of a routine are of the data that this rank gives: what it sends, puts, or has reduced.
 * A routine that takes alone (a receive, a broadcast's other ranks, a scatter's) has the bytes of
 * the buffer that it offers. Message sizes are per block: for each destination of an all-to-all.
 */
#ifndef MPIGRAFT_TRACE_COUNT_H
#define MPIGRAFT_TRACE_COUNT_H

#include "objects.h"

static inline unsigned size_class(uint64_t bytes)
{
    return bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
}

void count_size(struct trace_routine *row, uint64_t bytes, uint64_t messages, uint64_t took);

/* Blocks of one call that are not empty. */
struct blocks {
    uint64_t count, bytes, least, most;
};

static inline void add_block(struct blocks *of, uint64_t bytes)
{
    if (!bytes)
        return;
    if (!of->count++ || bytes < of->least)
        of->least = bytes;
    if (bytes > of->most)
        of->most = bytes;
    of->bytes += bytes;
}

/* Whether no class fits them: their mean may be in one that has none of them. */
static inline bool is_mixed(const struct blocks *of)
{
    return size_class(of->most) > size_class(of->least) + 1;
}

/* A block that this rank gives in a call whose blocks are `all`. */
static inline void count_block(struct trace_routine *row, const struct blocks *all, uint64_t bytes)
{
    row->bytes += bytes;
    if (!bytes || !is_mixed(all))
        count_size(row, bytes, 1, 0);
}

void count_time(struct trace_routine *row, const struct blocks *all, const struct blocks *given,
                uint64_t took);
void count_peer(struct self *me, int world, enum peer_kind kind, uint64_t bytes);

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

/* The buffer of a receive; nothing comes from MPI_PROC_NULL. A root of that name is of ranks that
 * take no part in a collective of an intercommunicator: their other arguments mean nothing. */
#define OFFERED(count, type, source)   \
    do {                               \
        if ((source) != MPI_PROC_NULL) \
            GIVEN(count, type);        \
    } while (0)

#define SENT(count, type, dest, comm)                                             \
    do {                                                                          \
        if ((dest) >= 0) {                                                        \
            uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);            \
            row->bytes += bytes_;                                                 \
            count_size(row, bytes_, 1, took);                                     \
            count_peer(me, world_rank(members_of_comm(me, comm), dest), PEER_P2P, \
                       bytes_);                                                   \
        }                                                                         \
    } while (0)

#define ONE_SIDED(count, type, target, win)                                             \
    do {                                                                                \
        if ((target) >= 0) {                                                            \
            uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);                  \
            row->bytes += bytes_;                                                       \
            count_size(row, bytes_, 1, took);                                           \
            count_peer(me, world_rank(members_of_win(me, win), target), PEER_ONE_SIDED, \
                       bytes_);                                                         \
        }                                                                               \
    } while (0)

/* With MPI_NO_OP it gives nothing, and what is said of the origin means nothing: as MPI_Get. */
#define FETCHED(count, type, target, win, op, result_count, result_type) \
    do {                                                                 \
        if (KEY(op) == process.no_op)                                    \
            ONE_SIDED(result_count, result_type, target, win);           \
        else                                                             \
            ONE_SIDED(count, type, target, win);                         \
    } while (0)

/* This rank's part of an allgather; in place it is where it is received. */
#define OWN(buffer, count, type, recvcount, recvtype) \
    do {                                              \
        if ((const void *)(buffer) == MPI_IN_PLACE)   \
            GIVEN(recvcount, recvtype);               \
        else                                          \
            GIVEN(count, type);                       \
    } while (0)

/* A part of `bytes_` of a gather whose parts have `counts`. */
#define PART(bytes_, counts, type, members)                       \
    do {                                                          \
        struct blocks all_ = {.count = 0};                        \
        struct blocks given_ = {.count = 0};                      \
        uint64_t item_ = type_size(me, type);                     \
        for (int i_ = 0; i_ < block_count(OTHERS, members); i_++) \
            add_block(&all_, (uint64_t)(counts)[i_] * item_);     \
        add_block(&given_, bytes_);                               \
        count_block(row, &all_, bytes_);                          \
        count_time(row, &all_, &given_, took);                    \
    } while (0)

#define OWN_OF(buffer, count, type, recvcounts, recvtype, comm)                               \
    do {                                                                                      \
        struct members *of_ = members_of_comm(me, comm);                                      \
        uint64_t own_ = (const void *)(buffer) == MPI_IN_PLACE                                \
                            ? (uint64_t)(recvcounts)[rank_in(comm)] * type_size(me, recvtype) \
                            : (uint64_t)(count) * type_size(me, type);                        \
        PART(own_, recvcounts, recvtype, of_);                                                \
    } while (0)

/* A gather's root gives its part too; with an intercommunicator it gives none. */
#define GATHERED(buffer, count, type, recvcount, recvtype, root, comm)                   \
    do {                                                                                 \
        bool in_place_ = (const void *)(buffer) == MPI_IN_PLACE;                         \
        if ((root) >= 0 && !in_place_) {                                                 \
            GIVEN(count, type);                                                          \
            count_peer(me, world_rank(members_of_comm(me, comm), root), PEER_COLLECTIVE, \
                       (uint64_t)(count) * type_size(me, type));                         \
        } else if (in_place_)                                                            \
            GIVEN(recvcount, recvtype);                                                  \
    } while (0)

#define GATHERED_EACH(buffer, count, type, recvcounts, recvtype, root, comm)               \
    do {                                                                                   \
        struct members *of_ = members_of_comm(me, comm);                                   \
        bool in_place_ = (const void *)(buffer) == MPI_IN_PLACE;                           \
        if ((root) < 0)                                                                    \
            break;                                                                         \
        uint64_t own_ = in_place_ ? (uint64_t)(recvcounts)[root] * type_size(me, recvtype) \
                                  : (uint64_t)(count) * type_size(me, type);               \
        if (is_root(comm, root))                                                           \
            PART(own_, recvcounts, recvtype, of_);                                         \
        else                                                                               \
            GIVEN(count, type);                                                            \
        if (!in_place_)                                                                    \
            count_peer(me, world_rank(of_, root), PEER_COLLECTIVE, own_);                  \
    } while (0)

int rank_in(MPI_Comm comm);
bool is_root(MPI_Comm comm, int root);

/* The same block for each. Nothing goes to a neighbor that is MPI_PROC_NULL. */
#define TO_EACH(place, count, type, comm)                                    \
    do {                                                                     \
        struct members *to_ = members_of_comm(me, comm);                     \
        if ((place) == NEIGHBORS)                                            \
            to_ = with_neighbors(to_, comm);                                 \
        uint64_t bytes_ = (uint64_t)(count) * type_size(me, type);           \
        uint64_t blocks_ = 0;                                                \
        for (int i_ = 0; i_ < block_count(place, to_); i_++) {               \
            int rank_ = block_rank(place, to_, i_);                          \
            if (rank_ < 0)                                                   \
                continue;                                                    \
            blocks_++;                                                       \
            count_peer(me, world_rank(to_, rank_), PEER_COLLECTIVE, bytes_); \
        }                                                                    \
        row->bytes += bytes_ * blocks_;                                      \
        count_size(row, bytes_, blocks_, took);                              \
    } while (0)

#define ALL(place, buffer, count, type, recvcount, recvtype, comm) \
    do {                                                           \
        if ((const void *)(buffer) == MPI_IN_PLACE)                \
            TO_EACH(place, recvcount, recvtype, comm);             \
        else                                                       \
            TO_EACH(place, count, type, comm);                     \
    } while (0)

/* A block of its own for each; `size` is of an item of block i_. A rank that gives none takes those
 * of `received`, of `taken` bytes an item: the call's time is for them. */
#define TO_EACH_OF(place, counts, size, received, taken, comm)                   \
    do {                                                                         \
        struct members *to_ = members_of_comm(me, comm);                         \
        struct blocks given_ = {.count = 0};                                     \
        struct blocks taken_ = {.count = 0};                                     \
        if ((place) == NEIGHBORS)                                                \
            to_ = with_neighbors(to_, comm);                                     \
        for (int i_ = 0; i_ < block_count(place, to_); i_++)                     \
            if (block_rank(place, to_, i_) >= 0)                                 \
                add_block(&given_, (uint64_t)(counts)[i_] * (size));             \
        for (int i_ = 0; !given_.count && i_ < taken_count(place, to_); i_++)    \
            add_block(&taken_, (uint64_t)(received)[i_] * (taken));              \
        for (int i_ = 0; i_ < block_count(place, to_); i_++) {                   \
            int rank_ = block_rank(place, to_, i_);                              \
            uint64_t bytes_ = rank_ < 0 ? 0 : (uint64_t)(counts)[i_] * (size);   \
            if (rank_ >= 0)                                                      \
                count_block(row, &given_, bytes_);                               \
            if (rank_ >= 0 && (counts)[i_])                                      \
                count_peer(me, world_rank(to_, rank_), PEER_COLLECTIVE, bytes_); \
        }                                                                        \
        count_time(row, given_.count ? &given_ : &taken_, &given_, took);        \
    } while (0)

#define EACH(place, buffer, counts, type, recvcounts, recvtype, comm)                      \
    do {                                                                                   \
        uint64_t taken_item_ = type_size(me, recvtype);                                    \
        if ((const void *)(buffer) == MPI_IN_PLACE)                                        \
            TO_EACH_OF(place, recvcounts, taken_item_, recvcounts, taken_item_, comm);     \
        else                                                                               \
            TO_EACH_OF(place, counts, type_size(me, type), recvcounts, taken_item_, comm); \
    } while (0)

#define ITEM(counts, types) ((counts)[i_] ? type_size(me, (types)[i_]) : 0)
#define EACH_TYPED(place, buffer, counts, types, recvcounts, recvtypes, comm)      \
    do {                                                                           \
        if ((const void *)(buffer) == MPI_IN_PLACE)                                \
            TO_EACH_OF(place, recvcounts, ITEM(recvcounts, recvtypes), recvcounts, \
                       ITEM(recvcounts, recvtypes), comm);                         \
        else                                                                       \
            TO_EACH_OF(place, counts, ITEM(counts, types), recvcounts,             \
                       ITEM(recvcounts, recvtypes), comm);                         \
    } while (0)

#define SCATTERED(count, type, recvcount, recvtype, root, comm) \
    do {                                                        \
        if (is_root(comm, root))                                \
            TO_EACH(OTHERS, count, type, comm);                 \
        else if ((root) >= 0)                                   \
            GIVEN(recvcount, recvtype);                         \
    } while (0)

#define SCATTERED_EACH(counts, type, recvcount, recvtype, root, comm)           \
    do {                                                                        \
        if (is_root(comm, root))                                                \
            TO_EACH_OF(OTHERS, counts, type_size(me, type), (counts), 0, comm); \
        else if ((root) >= 0)                                                   \
            GIVEN(recvcount, recvtype);                                         \
    } while (0)

/* As many parts as there are ranks here: of an intercommunicator those of the local group. */
#define REDUCED_EACH(counts, type, comm)                                  \
    do {                                                                  \
        uint64_t all_ = 0;                                                \
        for (int i_ = 0; i_ < own_count(members_of_comm(me, comm)); i_++) \
            all_ += (uint64_t)(counts)[i_];                               \
        GIVEN(all_, type);                                                \
    } while (0)

#define REDUCED_BLOCK(count, type, comm) \
    GIVEN((uint64_t)(count) * (uint64_t)own_count(members_of_comm(me, comm)), type)

/* Of MPI_MESSAGE_NO_PROC nothing comes; the call makes another handle of it. */
#define MATCHED(message) (me->no_message = KEY(*(message)) == process.no_message)
#define TAKEN_MESSAGE(count, type) \
    do {                           \
        if (!me->no_message)       \
            GIVEN(count, type);    \
    } while (0)

/* A handle may mean another object from now on. */
#define COMM_GONE __atomic_fetch_add(&process.generation, 1, __ATOMIC_RELAXED)
#define WIN_GONE COMM_GONE
#define TYPE_GONE __atomic_fetch_add(&process.types, 1, __ATOMIC_RELAXED)

/* ---- what persistent requests send when they are started ---- */

void forget_later(uint64_t request);
COLD void send_later(uint64_t request, uint64_t bytes, int world);
void count_started(struct self *me, struct trace_routine *row, uint64_t took, int count,
                   const MPI_Request *requests);

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

/* ---- sites.c ---- */

void keep_map(struct trace_rank *head);
void start_sites(void);
COLD void count_site(uint64_t routine, uint64_t took, uint64_t bytes);

#endif
