/* --check: what ranks send is written before a call and compared after it, off the clock.
 *
 * A message is a stream of bytes that both sides make of who sends it to whom, on which
 * communicator, with which tag, as which in number. It is unpacked into the sender's buffer and
 * packed out of the receiver's, so that datatypes may differ. Reductions have sums that all know.
 */
#ifndef MPIGRAFT_REPLAY_CHECK_H
#define MPIGRAFT_REPLAY_CHECK_H

#include "blocks.h"

static struct {
    bool on;
    uint64_t right, wrong, unchecked;
    struct counter {
        uint64_t key, number;
    } *counters; /* open addressing */
    size_t room, used;
    unsigned char *stream, *packed;
    size_t stream_room;
    uint64_t keys; /* of communicators that this rank named */
} checks;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 29;
}

static struct counter *counter_of(uint64_t key)
{
    if (checks.used * 2 >= checks.room) {
        struct counter *old = checks.counters;
        size_t before = checks.room;
        checks.room = before ? 2 * before : 1024;
        checks.counters = need(checks.room, sizeof *checks.counters);
        checks.used = 0;
        for (size_t i = 0; i < before; i++)
            if (old[i].key)
                *counter_of(old[i].key) = old[i];
        free(old);
    }
    key |= 1;
    for (size_t at = (size_t)(key >> 1) % checks.room;; at = (at + 1) % checks.room) {
        struct counter *one = &checks.counters[at];
        if (!one->key) {
            one->key = key;
            checks.used++;
        }
        if (one->key == key)
            return one;
    }
}

/* The how-manieth message this is, of those that `sends` or receives between two ranks. */
static uint64_t message_number(const struct communicator *comm, bool sends, int64_t peer, int64_t tag)
{
    return ++counter_of(mix(mix(mix(comm->key, (uint64_t)tag), (uint64_t)peer), sends))->number;
}

static uint64_t seed_of(const struct communicator *comm, uint64_t number, int64_t from, int64_t to,
                        int64_t tag)
{
    return mix(mix(mix(mix(comm->key, number), (uint64_t)from), (uint64_t)to), (uint64_t)tag);
}

static bool make_stream(uint64_t seed, int64_t bytes)
{
    if (bytes > INT_MAX)
        return false;
    if ((size_t)bytes + 8 > checks.stream_room) {
        checks.stream_room = 2 * (size_t)bytes + 4096;
        free(checks.stream), free(checks.packed);
        checks.stream = need(checks.stream_room, 1);
        checks.packed = need(checks.stream_room, 1);
    }
    for (int64_t i = 0; i < bytes; i += 8) {
        uint64_t one = mix(seed, (uint64_t)i);
        memcpy(checks.stream + i, &one, 8);
    }
    return true;
}

static void fill_block(char *buffer, const struct block *block, const struct communicator *comm,
                       uint64_t seed)
{
    int64_t bytes = block->count * (int64_t)block->type->size;
    int position = 0;
    if (bytes && make_stream(seed, bytes))
        OWN(PMPI_Unpack(checks.stream, (int)bytes, &position, buffer + block->offset, (int)block->count,
                       block->type->handle, comm->handle));
}

/* -1: as it should be; else the first byte that differs. `bytes`: no more arrived. */
static int64_t difference(char *buffer, const struct block *block, const struct communicator *comm,
                          uint64_t seed, int64_t bytes)
{
    int64_t all = block->count * (int64_t)block->type->size;
    int position = 0;
    bytes = bytes < all ? bytes : all;
    if (!bytes || !make_stream(seed, all))
        return -1;
    OWN(PMPI_Pack(buffer + block->offset, (int)block->count, block->type->handle, checks.packed,
                 (int)checks.stream_room, &position, comm->handle));
    if (!memcmp(checks.packed, checks.stream, (size_t)bytes))
        return -1;
    for (int64_t i = 0; i < bytes; i++)
        if (checks.packed[i] != checks.stream[i])
            return i;
    return -1;
}

static void report_difference(const char *name, int64_t from, int64_t at)
{
    if (!checks.wrong++)
        fprintf(stderr, PROGRAM ": rank %d: MPI_%s got wrong data from rank %lld, from byte %lld on\n",
                speaker, name, (long long)from, (long long)at);
}

/* ---- collectives that move data ---- */

static bool moves_data(const char *stem)
{
    return one_of(stem, " bcast gather gatherv scatter scatterv allgather allgatherv alltoall "
                        "alltoallv alltoallw ");
}

/* The seed of a block: `sends`, or arrives here. */
static uint64_t block_seed(const struct call *call, const char *stem, const struct communicator *comm,
                           uint64_t number, const struct block *block, bool sends)
{
    int64_t peer = block->peer < 0 ? 0 : block->peer, root = field_of(call, "root", 0);
    if (!strcmp(stem, "bcast"))
        return seed_of(comm, number, root, 0, 0);
    if (starts_with(stem, "scatter"))
        return seed_of(comm, number, root, sends ? peer : comm->rank, 0);
    if (starts_with(stem, "alltoall"))
        return seed_of(comm, number, sends ? comm->rank : peer, sends ? peer : comm->rank, 0);
    return seed_of(comm, number, sends ? comm->rank : peer, 0, 0);
}

/* In place, a rank's part lies where it is received. */
static void fill_in_place(const struct call *call, const char *stem, const struct communicator *comm,
                          uint64_t number, char *buffer)
{
    bool all = starts_with(stem, "alltoall");
    for (int64_t i = 0; i < blocks.count; i++)
        if (all || blocks.items[i].peer == comm->rank)
            fill_block(buffer, &blocks.items[i], comm,
                       block_seed(call, stem, comm, number, &blocks.items[i], true));
}

static void fill_collective(const struct call *call, const char *stem, const struct communicator *comm,
                            uint64_t number, char *const buffers[2])
{
    bool broadcast = !strcmp(stem, "bcast"), in_place = false;
    for (int side = 0; side < 2; side++) {
        int at = call->buffers[side];
        if (at < 0 || (broadcast && field_of(call, "root", 0) != comm->rank))
            continue;
        const char *name = call->routine->parameters[at].name;
        in_place |= call->fields[at].value == 1;
        if (call->fields[at].value == 1)
            continue;
        blocks_of_buffer(call, name);
        if (broadcast || name[0] == 's')
            for (int64_t i = 0; i < blocks.count; i++)
                fill_block(buffers[side], &blocks.items[i], comm,
                           block_seed(call, stem, comm, number, &blocks.items[i], true));
        else if (in_place)
            fill_in_place(call, stem, comm, number, buffers[side]);
    }
}

static void verify_collective(const struct call *call, const char *stem, const struct communicator *comm,
                              uint64_t number, char *const buffers[2])
{
    bool broadcast = !strcmp(stem, "bcast");
    for (int side = 0; side < 2; side++) {
        int at = call->buffers[side];
        if (at < 0 || call->fields[at].value == 1)
            continue;
        const char *name = call->routine->parameters[at].name;
        if (!broadcast && name[0] == 's')
            continue;
        blocks_of_buffer(call, name);
        for (int64_t i = 0; i < blocks.count; i++) {
            const struct block *block = &blocks.items[i];
            int64_t where = difference(buffers[side], block, comm,
                                       block_seed(call, stem, comm, number, block, false), INT64_MAX);
            if (where >= 0) {
                report_difference(call->routine->name, block->peer < 0 ? 0 : block->peer, where);
                return;
            }
        }
    }
    checks.right++;
}

#endif
